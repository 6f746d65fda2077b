package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The lines of the log about a reload.
const (
	reloaded      = "reloaded the settings"
	refusedReload = "refused the settings; those in force stay"
)

// hangUp sends SIGHUP and waits for one more line with a message in the log, which it
// returns.
func (p *process) hangUp(t *testing.T, message string) map[string]any {
	t.Helper()
	before := len(p.logged(message))
	must(t, p.cmd.Process.Signal(syscall.SIGHUP))
	eventually(t, message, func() bool { return len(p.logged(message)) > before })
	return p.logged(message)[before]
}

// A caller whose plan is raised is admitted on its next request, and keeps its usage
// and its ban.
func TestReloadOfPlans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const plan = "plans: {free: [%d/8784h], other: [1/8784h]}\npenalty: {strikes: 1, grace: 0s, ban: 1h, growth: 1, max: 1h, forgive: 1h}\n"
	writeFile(t, dir, "petstore.yaml", fmt.Sprintf(plan, 2))
	ada := petstore(t, dir, "keys", "create", "--name=n", "--owner=ada", "--plan=free", "--config=petstore.yaml")
	eve := petstore(t, dir, "keys", "create", "--name=n", "--owner=eve", "--plan=other", "--config=petstore.yaml")
	p := serve(t, dir, "--config=petstore.yaml")
	for _, status := range []int{200, 200, 429} {
		mustAsk(t, status, "GET", p.api+"/v1/pets", ada, "")
	}
	for _, status := range []int{200, 429, 429, 429} {
		mustAsk(t, status, "GET", p.api+"/v1/pets", eve, "")
	}

	writeFile(t, dir, "petstore.yaml", strings.ReplaceAll(fmt.Sprintf(plan, 4), "1/8784h", "10/8784h"))
	if line := p.hangUp(t, reloaded); fmt.Sprint(line["changed"]) != "[plans]" {
		t.Errorf("the log says %v, want that the plans changed", line)
	}
	if a := mustAsk(t, 200, "GET", p.api+"/v1/pets", ada, ""); a.header.Get("X-RateLimit-Limit") != "4" || a.header.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("after the plan was raised to 4, limit and remaining are %s and %s, want 4 and 1 after 3 requests",
			a.header.Get("X-RateLimit-Limit"), a.header.Get("X-RateLimit-Remaining"))
	}
	if a := mustAsk(t, 429, "GET", p.api+"/v1/pets", eve, ""); a.code() != "api_key_banned" {
		t.Errorf("a ban has ended with a reload: %s", a.body)
	}

	writeFile(t, dir, "petstore.yaml", fmt.Sprintf(plan, 3))
	p.hangUp(t, reloaded)
	mustAsk(t, 429, "GET", p.api+"/v1/pets", ada, "")
}

func TestReloadOfWhatClientsSee(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", "")
	key := roomyKey(t, dir, "ada")
	p := serve(t, dir, "--config=petstore.yaml")
	get := func(path string) answer {
		t.Helper()
		return call{path: path, key: key, origin: "https://app.example"}.mustSend(t, 200, p.api)
	}
	check := func(reloaded bool) {
		t.Helper()
		usage, document := get("/v1/usage"), get("/openapi.json")
		for what, got := range map[string]bool{
			"Deprecation":        usage.header.Get("Deprecation") != "",
			"RateLimit":          usage.header.Get("RateLimit") != "",
			"the origin allowed": document.header.Get("Access-Control-Allow-Origin") == "https://app.example",
			"the sunset":         strings.Contains(string(document.body), `"x-sunset":"2099-12-01"`),
			"the stability":      strings.Contains(string(document.body), `"x-stability-level":"experimental"`),
			"the public address": strings.Contains(string(document.body), `{"url":"https://pets.example/v1",`),
		} {
			if got != reloaded {
				t.Errorf("a response has %s: %v, want %v", what, got, reloaded)
			}
		}
	}
	sunset := func(operation string) float64 {
		return p.metrics(t)[`petstore_deprecation_sunset_timestamp_seconds{gatehouse_operation="`+operation+`"}`]
	}
	if got, want := sunset("getPet"), time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC).Unix(); got != float64(want) {
		t.Errorf("the metric of the sunset of getPet is %v, want %v", got, want)
	}
	check(false)
	tag := get("/openapi.json").header.Get("ETag")
	writeFile(t, dir, "petstore.yaml", "cors_origins: [https://app.example]\ndraft_headers: true\n"+
		"deprecations: {getUsage: {since: 2026-01-01, sunset: 2099-12-01}}\n"+
		"stability: {listPets: experimental, getUsage: beta}\nservers: {production: https://pets.example/v1}\n")
	line := p.hangUp(t, reloaded)
	check(true)
	if get("/openapi.json").header.Get("ETag") == tag {
		t.Error("after the reload /openapi.json has the ETag of the old one")
	}
	if got, want := sunset("getUsage"), time.Date(2099, time.December, 1, 0, 0, 0, 0, time.UTC).Unix(); got != float64(want) || sunset("getPet") != 0 {
		t.Errorf("after the reload the metrics of the sunsets are %v and %v, want %v and none", got, sunset("getPet"), want)
	}
	admin := "--admin-listen=" + strings.TrimPrefix(p.admin, "http://")
	if list := petstore(t, dir, "deprecations", admin); !strings.Contains(list, "getUsage") || !strings.Contains(list, "2099-12-01") {
		t.Errorf("petstore deprecations says %s, want the one that was added", list)
	}
	const changed = "[draft_headers cors_origins deprecations stability servers.production]"
	if fmt.Sprint(line["changed"]) != changed || fmt.Sprint(line["need_restart"]) != "[]" || line["cause"] != "SIGHUP" || line["file"] != "petstore.yaml" {
		t.Errorf("the log says %v, want the changes %s in the file", line, changed)
	}

	writeFile(t, dir, "petstore.yaml", "deprecations: {getNothing: {since: 2025-12-05}}\n")
	line = p.hangUp(t, refusedReload)
	const want = "petstore.yaml:1:28: deprecations.getNothing: unknown operation"
	if got, _ := line["error"].(string); line["level"] != "ERROR" || !strings.HasPrefix(got, want) {
		t.Errorf("the log says %v, want an error that begins with %q", line, want)
	}
	check(true)
	if health := petstore(t, dir, "health", "--ready", admin); !strings.Contains(health, "settings: "+want) {
		t.Errorf("petstore health --ready says %s, want also that the settings are refused", health)
	}
}
