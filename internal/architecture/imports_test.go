// Package architecture tests the rules on imports.
package architecture

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/animalstore/gatehouse"

// rules lists, for each package, the packages of Gatehouse that it may import,
// without the module path, and the modules of others that it may depend on,
// directly or not. The standard library and the packages of internal are always
// allowed, and so are the internal packages of a package's own directory, and of the
// directories that it may import.
var rules = map[string][]string{
	"adapters/gatehousechi":      {"apierror", "github.com/go-chi/chi/v5"},
	"adapters/gatehouseconnect":  slices.Concat(protobuf, []string{"adapters/internal/rpclimit", "apierror", "middleware/bearer", "middleware/limit", "ratelimit", "connectrpc.com/connect"}),
	"adapters/gatehouseecho":     {"apierror", "middleware", "github.com/labstack/echo/v5"},
	"adapters/gatehousefiber":    slices.Concat(fiber, []string{"middleware/limit", "ratelimit"}),
	"adapters/gatehousegin":      slices.Concat(gin, []string{"apierror", "middleware"}),
	"adapters/gatehousegrpc":     slices.Concat(protobuf, []string{"adapters/internal/rpclimit", "apierror", "middleware/bearer", "middleware/limit", "ratelimit", "google.golang.org/grpc", "golang.org/x"}),
	"adapters/internal/contract": {"apierror", "deprecation", "middleware", "middleware/apikey", "middleware/bearer", "middleware/clientip", "middleware/limit", "ratelimit", "ratelimit/engine", "ratelimit/memory"},
	"adapters/internal/rpclimit": {"apierror", "middleware/limit", "ratelimit", "ratelimit/engine"},
	"apierror":                   {},
	"deprecation":                {"apierror"},
	"internal/testcheck":         {},
	"internal/compatibility":     {},
	"internal/fixedwindow":       {},
	"internal/gcra":              {},
	"internal/nilvalue":          {},
	"internal/plan":              {},
	"internal/race":              {},
	"internal/redistest":         {},
	"internal/release":           {},
	"internal/response":          {},
	"internal/testenv":           {},
	"internal/wire":              {},
	"middleware":                 {"apierror"},
	"middleware/apikey":          {"apierror", "middleware/bearer", "middleware/clientip", "ratelimit", "ratelimit/memory"},
	"middleware/apikey/sqlkeys":  {"middleware/apikey", "ratelimit", "ratelimit/engine"},
	"middleware/bearer":          {"apierror"},
	"middleware/clientip":        {},
	"middleware/console":         {"apierror", "ratelimit", "ratelimit/engine"},
	"middleware/inflight":        {"apierror"},
	"middleware/jsonbody":        {"apierror", "github.com/santhosh-tekuri/jsonschema/v5"},
	"middleware/limit":           {"apierror", "middleware/clientip", "ratelimit", "ratelimit/engine", "ratelimit/memory"},
	"middleware/telemetry":       slices.Concat(openTelemetry, []string{"apierror", "middleware", "middleware/apikey", "middleware/bearer", "middleware/inflight", "ratelimit", "ratelimit/engine", "ratelimit/failover", "ratelimit/lease", "ratelimit/memory"}),
	"ratelimit":                  {},
	"ratelimit/engine":           {"ratelimit"},
	"ratelimit/enginetest":       {"ratelimit", "ratelimit/engine", "ratelimit/ratelimittest", "github.com/google/go-cmp"},
	"ratelimit/failover":         {"ratelimit", "ratelimit/engine"},
	"ratelimit/internal/partial": {},
	"ratelimit/lease":            {"ratelimit", "ratelimit/engine"},
	"ratelimit/memory":           {"ratelimit", "ratelimit/engine"},
	"ratelimit/ratelimittest":    {"ratelimit", "ratelimit/engine"},
	"ratelimit/redislimit":       slices.Concat(goRedis, []string{"ratelimit", "ratelimit/engine"}),
	"ratelimit/redislimit/slots": goRedis,
	"ratelimit/redisrate":        slices.Concat(goRedis, []string{"ratelimit", "ratelimit/engine", "github.com/go-redis/redis_rate/v10"}),
	"ratelimit/transport":        {"apierror", "deprecation", "ratelimit", "ratelimit/engine"},
	"ratelimit/ululelimit":       {"ratelimit", "ratelimit/engine", "github.com/ulule/limiter/v3", "github.com/pkg/errors"},
}

// goRedis is go-redis and the modules that it depends on.
var goRedis = []string{"github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "go.uber.org/atomic", "golang.org/x/sys"}

// openTelemetry is the API of OpenTelemetry, without its SDK, and the modules that it
// depends on.
var openTelemetry = []string{
	"go.opentelemetry.io/otel", "go.opentelemetry.io/auto/sdk", "github.com/cespare/xxhash/v2",
	"github.com/go-logr/logr", "github.com/go-logr/stdr",
}

// protobuf is the protobuf runtime, and the messages in the details of errors.
var protobuf = []string{"google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc"}

// fiber is Fiber and the modules that it depends on.
var fiber = []string{
	"github.com/gofiber", "github.com/valyala", "github.com/andybalholm/brotli", "github.com/google/uuid",
	"github.com/klauspost/compress", "github.com/mattn", "github.com/philhofer/fwd", "github.com/tinylib/msgp", "golang.org/x",
}

// gin is Gin and the modules that it depends on.
var gin = []string{
	"github.com/gin-gonic/gin", "github.com/gin-contrib/sse", "github.com/gabriel-vasile/mimetype", "github.com/go-playground",
	"github.com/goccy/go-yaml", "github.com/leodido/go-urn", "github.com/mattn/go-isatty", "github.com/pelletier/go-toml/v2",
	"github.com/quic-go", "github.com/ugorji/go/codec", "go.mongodb.org/mongo-driver/v2", "golang.org/x", "google.golang.org/protobuf",
}

// unruled lists directories of programs and of tests, which may import anything.
// No rule allows a package to import one of them.
var unruled = []string{
	"benchmarks", "examples", "reference", "internal/architecture",
	"ratelimit/redislimit/internal", "ratelimit/internal/interleave",
}

// floors are the top directories of what is released, the lowest first.
var floors = []string{"internal", "apierror", "deprecation", "ratelimit", "middleware", "adapters"}

// No package imports one of a higher floor. The programs and tests in internal and in
// ratelimit/internal, which nothing imports, may.
func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.path, module+"/")
		top, _, _ := strings.Cut(name, "/")
		floor := slices.Index(floors, top)
		if floor < 0 || slices.ContainsFunc(unruled, func(dir string) bool { return within(name, dir) }) {
			continue
		}
		for _, i := range p.imports {
			own, ours := strings.CutPrefix(i, module+"/")
			above, _, _ := strings.Cut(own, "/")
			if ours && slices.Index(floors, above) > floor {
				t.Errorf("%s must not import %s, which stands above it", name, own)
			}
		}
	}
}

func TestImports(t *testing.T) {
	found := make(map[string]bool)
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.path, module+"/")
		if slices.ContainsFunc(unruled, func(dir string) bool { return within(name, dir) }) {
			continue
		}
		found[name] = true
		allowed, known := rules[name]
		if !known {
			t.Errorf("%s: no rule says what it may import; add one", name)
			continue
		}
		for _, i := range p.imports {
			own, ours := strings.CutPrefix(i, module+"/")
			owner, _, _ := strings.Cut(own, "/internal/")
			if ours && owner != name && !within(own, "internal") && !slices.Contains(allowed, own) && !slices.Contains(allowed, owner) {
				t.Errorf("%s must not import %s", name, own)
			}
		}
		for _, d := range p.deps {
			if other(d) && !slices.ContainsFunc(allowed, func(a string) bool { return within(d, a) }) {
				t.Errorf("%s must not depend on %s", name, d)
			}
		}
	}
	for name := range rules {
		if !found[name] {
			t.Errorf("a rule names %s, which does not exist", name)
		}
	}
}

// other reports whether a package belongs neither to Gatehouse nor to the standard
// library.
func other(path string) bool {
	host, _, _ := strings.Cut(path, "/")
	return strings.Contains(host, ".") && !within(path, module)
}

// within reports whether path is dir or below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

type listed struct {
	path          string
	imports, deps []string // direct; direct or not
}

// list lists the packages of all modules in the workspace. Git refuses to say anything about a
// checkout of another user.
var list = sync.OnceValues(exec.Command("go", "list", "-buildvcs=false", "-f", format, "work").Output)

const format = `{{.ImportPath}};{{join .Imports " "}};{{join .Deps " "}}`

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := list()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), ";")
		all = append(all, listed{fields[0], strings.Fields(fields[1]), strings.Fields(fields[2])})
	}
	return all
}
