// Package architecture holds the rules on who may import whom.
package architecture

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/animalstore/gatehouse"

// rules say what each package may import beside the standard library: packages
// of this module, named from its root, and, by their module paths, others. What
// is not listed may import nothing. A package that is imported for one thing
// must not bring another. The internal packages of a folder belong to its package.
var rules = map[string][]string{
	"apierror":            {"internal/response"},
	"deprecation":         {"apierror", "internal/response"},
	"ratelimit":           {"apierror", "internal/response"},
	"ratelimit/memory":    {"ratelimit", "apierror", "internal/response"},
	"ratelimit/failover":  {"ratelimit", "apierror", "internal/response"},
	"middleware":          {"apierror", "internal/response"},
	"middleware/bearer":   {"apierror", "internal/response"},
	"middleware/apikey":   {"middleware/bearer", "ratelimit", "apierror", "internal/response"},
	"middleware/clientip": {},
	"middleware/jsonbody": {"apierror", "internal/response", "github.com/santhosh-tekuri/jsonschema/v5"},
	"ratelimit/redislimit": {"ratelimit", "apierror", "internal/response", "github.com/redis/go-redis/v9",
		"github.com/cespare/xxhash/v2", "go.uber.org/atomic", "golang.org/x/sys"}, // what go-redis itself brings
	"ratelimit/redisrate": {"ratelimit", "apierror", "internal/response", "github.com/go-redis/redis_rate/v10", "github.com/redis/go-redis/v9",
		"github.com/cespare/xxhash/v2", "go.uber.org/atomic", "golang.org/x/sys"},
	"ratelimit/ululelimit":    {"ratelimit", "apierror", "internal/response", "github.com/ulule/limiter/v3", "github.com/pkg/errors"},
	"ratelimit/ratelimittest": {"ratelimit", "apierror", "internal/response", "github.com/google/go-cmp"},
	"internal/response":       {},
	"internal/mutate":         {},
}

func TestImports(t *testing.T) {
	packages := list(t, "{{.ImportPath}}", "../../...")
	for _, path := range packages {
		name := strings.TrimPrefix(path, module+"/")
		if name == "internal/architecture" || strings.HasPrefix(name, "ratelimit/internal/") ||
			strings.HasPrefix(name, "ratelimit/memory/internal/interleave") { // tests only
			continue
		}
		allowed, known := rules[name]
		if !known {
			t.Errorf("%s: there is no rule on what it may import; add one", name)
			continue
		}
		for _, dep := range list(t, "{{if not .Standard}}{{.ImportPath}}{{end}}", "-deps", "../../"+name) {
			if !permitted(dep, name, allowed) {
				t.Errorf("%s imports %s, directly or not, and may not", name, dep)
			}
		}
	}
	for name := range rules {
		if !slices.Contains(packages, module+"/"+name) {
			t.Errorf("there is a rule for %s, and no such package", name)
		}
	}
}

func permitted(dep, name string, allowed []string) bool {
	if own, ours := strings.CutPrefix(dep, module+"/"); ours {
		owner, _, _ := strings.Cut(own, "/internal/")
		return owner == name || slices.Contains(allowed, own) || slices.Contains(allowed, owner)
	}
	return slices.ContainsFunc(allowed, func(a string) bool { return dep == a || strings.HasPrefix(dep, a+"/") })
}

// list runs go list in this module alone.
func list(t *testing.T, format string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-f", format}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, err.(*exec.ExitError).Stderr)
	}
	return strings.Fields(string(out))
}
