# The common tasks. Most of them need only Go.

SHELL = bash
PKG ?= ./ratelimit/memory
FUZZTIME ?= 30s

# The development tools, which go install builds outside of the workspace.
GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.1.4

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## all tests
	go test work

# Without this, each process waits for a second before it ends.
race test-long: export GORACE = atexit_sleep_ms=0
# SQLite is a translation from C. Its own memory is not of interest, and watching it
# costs a third of the time of its tests.
raced = go test -race -shuffle=on -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false
# Packages whose tests run in one goroutine, or run other commands, which go builds
# without the race detector.
alone = /internal/(architecture|fixedwindow|fleet|gcra|interleave|interleave/sched|release)$$
# Packages with tests that only -long or the build tag long runs.
long = go list -tags long -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' work | awk '/internal\/testenv/ {print $$1}'

.PHONY: race
race: ## tests under the race detector, in random order, except where nothing is concurrent, and those of test-long
	$(raced) $$(go list work | grep -vE '$(alone)' | grep -vxFf <($(long)))

.PHONY: test-long
test-long: ## all tests of the packages in which some take long, under the race detector
	$(raced) -tags long $$($(long) | grep -vE '$(alone)') -long
	go test -tags long $$($(long) | grep -E '$(alone)') -long

.PHONY: test-32bit
test-32bit: ## tests where integers have 32 bits (amd64 runs them)
	.ci/test-32bit

# The files of the script of redislimit, in the order in which Redis runs them.
script = format.lua fast.lua lease.lua rules.lua operations.lua

.PHONY: lint
lint: .bin/golangci-lint ## gofmt, go vet, also for Windows and macOS, golangci-lint, and luacheck
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); \
		[ -z "$$unformatted" ] || { echo "gofmt -w would change:"; echo "$$unformatted"; exit 1; }
	go vet -tags long work
	GOOS=windows go vet -tags long work
	GOOS=darwin go vet -tags long work
	.bin/golangci-lint run $$(go list -m -f '{{.Dir}}/...')
	@command -v luacheck >/dev/null || { echo "luacheck is not installed: the Lua scripts are not checked"; exit 0; }; \
		cd ratelimit/redislimit && cat $(script) | luacheck -q - && luacheck -q slots

.PHONY: tidy
tidy: ## check that go mod tidy would change nothing
	@for dir in $$(go list -m -f '{{.Dir}}'); do \
		(cd $$dir && GOWORK=off go mod tidy -diff) || { echo "go mod tidy would change $$dir/go.mod or go.sum"; exit 1; }; \
	done

.PHONY: bench
bench: ## every benchmark once; figures come from the commands in docs/*BENCHMARKS.md
	.ci/bench

.PHONY: generate
generate: ## renew docs/FAULTS.md (2 minutes) and docs/BENCHMARKS.md (over half an hour)
	go generate ./ratelimit/redislimit/internal/faults
	go generate ./benchmarks

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (30s)
	FUZZTIME=$(FUZZTIME) .ci/fuzz

.PHONY: mutate
mutate: ## small changes to PKG (./ratelimit/memory) that a test should notice; DIFF=main: only to lines changed since then
	go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash $(PKG) --diff=$(DIFF) --output-statuses=lt \
		--invert-assignments --invert-bitwise --invert-bwassign --invert-logical --invert-loopctrl --remove-self-assignments

.PHONY: vuln
vuln: ## known vulnerabilities, if their database can be reached
	.ci/vuln

.PHONY: release-check
release-check: ## release a copy of the repository and install each module from it
	go test -count 1 ./internal/release -long

.bin/golangci-lint .bin/govulncheck: Makefile
.bin/golangci-lint: tool = $(GOLANGCI_LINT)
.bin/govulncheck: tool = $(GOVULNCHECK)
.bin/%:
	GOBIN=$(CURDIR)/.bin go install $(tool)
	@touch $@
