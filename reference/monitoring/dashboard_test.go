package monitoring

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write METRICS.md instead of comparing it")

// compare compares a generated file with what it should contain, or writes it.
func compare(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // it is part of the repository
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what go generate ./reference/monitoring writes (-want +got):\n%s", file, diff)
	}
}

// A shown panel is what the reader of the dashboard sees of one.
type shown struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Thresholds struct {
				Steps []struct{ Value *float64 }
			}
		}
	}
	Targets []struct{ Expr, LegendFormat string }
}

func readPanels(t *testing.T) []shown {
	t.Helper()
	data, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Panels []shown }
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d.Panels
}

func TestPanelsExplainThemselves(t *testing.T) {
	ids, titles := map[int]bool{}, map[string]bool{}
	for _, p := range readPanels(t) {
		if ids[p.ID] || titles[p.Title] {
			t.Errorf("panel %q: two panels have its title or its id %d", p.Title, p.ID)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || !strings.HasSuffix(p.Description, ".") || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %q needs a title, a description in sentences and a unit", p.Title)
		}
		for _, target := range p.Targets {
			if target.LegendFormat == "" {
				t.Errorf("panel %q: no name for the lines of %s", p.Title, target.Expr)
			}
		}
		last := 0.0
		for i, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if first := i == 0; first != (step.Value == nil) || !first && *step.Value <= last {
				t.Errorf("panel %q: thresholds must begin without a value and then grow", p.Title)
			} else if !first {
				last = *step.Value
			}
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range readPanels(t) {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q covers %q, or is wider than 24 columns", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
