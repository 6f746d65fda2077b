package config

import (
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

func TestPenaltyIsThatOfAllPlansWhereverItStands(t *testing.T) {
	for _, file := range []string{
		"penalty: {strikes: 3}\nplans: {a: [1/day], b: custom}\nanonymous: [1/day]\n",
		"plans: {a: [1/day], b: custom}\nanonymous: [1/day]\npenalty: {strikes: 3}\n",
	} {
		c := mustLoad(t, file)
		a, err := c.Plans.Of("a", nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Plans.Of("b", []string{"1/day"})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*ratelimit.Plan{a, b, c.Anonymous} {
			if p.Penalty().Strikes != 3 {
				t.Errorf("plan %s of\n%s\nallows %d strikes, want 3", p.Name(), file, p.Penalty().Strikes)
			}
		}
	}
}

// A penalty in the file holds for the plans that the file leaves as they are,
// too.
func TestPenaltyReachesDefaultPlans(t *testing.T) {
	for _, tt := range []struct {
		file    string
		strikes int
	}{
		{"penalty: {strikes: 3}", 3},
		{"penalty: {strikes: 0}", 0},
	} {
		c := mustLoad(t, tt.file)
		for _, name := range c.Plans.Names() {
			var quotas []string
			if name == "enterprise" {
				quotas = []string{"5/minute"}
			}
			p, err := c.Plans.Of(name, quotas)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Penalty().Strikes; got != tt.strikes {
				t.Errorf("%s: plan %s allows %d strikes, want %d", tt.file, name, got, tt.strikes)
			}
		}
		if got := c.Anonymous.Penalty().Strikes; got != tt.strikes {
			t.Errorf("%s: callers without a key have %d strikes, want %d", tt.file, got, tt.strikes)
		}
	}
}
