// Package engines compares the guide to the engines, docs/ENGINES.md, with the engines.
package engines

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

// engines are the columns of the page, named as the folders of their packages.
var engines = []struct {
	name    string
	limiter ratelimit.Limiter // nil, of the engine's type
}{
	{"memory", (*memory.Limiter)(nil)},
	{"redislimit", (*redislimit.Limiter)(nil)},
	{"failover", (*failover.Limiter)(nil)},
	{"redisrate", (*redisrate.Limiter)(nil)},
	{"ululelimit", (*ululelimit.Limiter)(nil)},
}

// capabilities are the rows that say yes or no.
var capabilities = map[string]func(l ratelimit.Limiter, g enginetest.Gaps) bool{
	"plans of several quotas":                     func(_ ratelimit.Limiter, g enginetest.Gaps) bool { return !g.OneQuota },
	"windows aligned to UTC":                      func(_ ratelimit.Limiter, g enginetest.Gaps) bool { return !g.RollingWindows },
	"calendar windows":                            func(_ ratelimit.Limiter, g enginetest.Gaps) bool { return !g.NoCalendars },
	"smooth quotas":                               func(_ ratelimit.Limiter, g enginetest.Gaps) bool { return !g.NoSmooth },
	"a denial is not charged":                     func(_ ratelimit.Limiter, g enginetest.Gaps) bool { return !g.ChargesDenials },
	"usage stays if the plan changes":             func(_ ratelimit.Limiter, g enginetest.Gaps) bool { return !g.UsagePerPlan },
	"strikes and bans":                            func(_ ratelimit.Limiter, g enginetest.Gaps) bool { return !g.NoPenalties },
	"bans by hand, with a reason (engine.Banner)": is[engine.Banner],
	"several charges at one instant":              func(_ ratelimit.Limiter, g enginetest.Gaps) bool { return !g.InOrder },
	"refunds and settling (engine.Adjuster)":      is[engine.Adjuster],
	"holds (engine.Holder)":                       is[engine.Holder],
	"units charged in advance (engine.Leaser)":    is[engine.Leaser],
	"looking up (engine.Peeker)":                  is[engine.Peeker],
	"forgetting a subject (Reset)": is[interface {
		Reset(ctx context.Context, subject string) error
	}],
}

func is[Capability any](l ratelimit.Limiter, _ enginetest.Gaps) bool {
	_, ok := l.(Capability)
	return ok
}

func TestCapabilities(t *testing.T) {
	page := readTable(t, "ENGINES.md", "What they can do")
	for _, e := range engines {
		gaps := declared(t, "../../../ratelimit/"+e.name)
		for name, can := range capabilities {
			want := "no"
			if can(e.limiter, gaps) {
				want = "yes"
			}
			if got := page[name][e.name]; got != want {
				t.Errorf("%s, %s: the page says %q, want %q", e.name, name, got, want)
			}
		}
	}
	for name, row := range page {
		if capabilities[name] == nil && (row["memory"] == "yes" || row["memory"] == "no") {
			t.Errorf("no engine is asked about the row %q", name)
		}
	}
}

// declared returns the gaps that the conformance tests in a folder declare. All of them
// must be the same.
func declared(t *testing.T, folder string) (gaps enginetest.Gaps) {
	t.Helper()
	files := testcheck.Must(filepath.Glob(folder + "/*_test.go"))
	found := 0
	for _, file := range files {
		parsed := testcheck.Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if s, ok := literal.Type.(*ast.SelectorExpr); !ok || s.Sel.Name != "Gaps" {
				return true
			}
			var g enginetest.Gaps
			for _, field := range literal.Elts { // each is Name: true
				name := field.(*ast.KeyValueExpr).Key.(*ast.Ident).Name
				reflect.ValueOf(&g).Elem().FieldByName(name).SetBool(true)
			}
			found++
			g.InOrder = g.InOrder && (found == 1 || gaps.InOrder) // redislimit has it on several servers only
			if gaps.InOrder = g.InOrder; found > 1 && g != gaps {
				t.Errorf("%s: the conformance tests declare %+v and %+v", folder, gaps, g)
			}
			gaps = g
			return true
		})
	}
	if found == 0 {
		t.Fatalf("%s: no test declares enginetest.Gaps", folder)
	}
	return gaps
}
