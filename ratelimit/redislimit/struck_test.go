package redislimit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Requests of one subject that share a batch share an answer. Each decision says
// whether its own request was a strike, and one of them that it started the ban.
func TestStrikesInABatch(t *testing.T) {
	penalty := ratelimit.Penalty{Strikes: 2, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", penalty, ratelimit.Quota{Limit: 2, Window: fixedwindow.MaxLength})
	for name, test := range map[string]struct {
		index indexUse
		want  []string
	}{
		"a ban starts": {indexNotNeeded, []string{
			"allowed", "allowed", "limited, 1 left, struck", "limited, 0 left, struck",
			"banned, 0 left, struck, ban started", "banned, 0 left", "banned, 0 left",
		}},
		"the ban is due, but its slot moves": {indexUnavailable, []string{
			"allowed", "allowed", "limited, 1 left, struck", "limited, 0 left, struck",
			"limited, 0 left", "limited, 0 left", "limited, 0 left",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := serverAt(t, time.Now())
			decide := func(requests int, index indexUse) []string {
				b := new(batch)
				b.join(operation{code: opTake, subject: "a", plan: plan, cost: 1}, requests)
				b.groups[0].index = index
				if err := b.exchange(l); err != nil {
					t.Fatal(err)
				}
				return describe(t, b.groups[0])
			}
			if got := decide(len(test.want), test.index); !slices.Equal(got, test.want) {
				t.Errorf("in one batch: %q, want %q", got, test.want)
			}
			want := []string{"banned, 0 left", "banned, 0 left"}
			if test.index == indexUnavailable {
				want[0] = "banned, 0 left, struck, ban started"
			}
			if got := decide(2, indexNotNeeded); !slices.Equal(got, want) {
				t.Errorf("in the next batch: %q, want %q", got, want)
			}
		})
	}
}

// describe returns the decisions on the requests of an answered group.
func describe(t *testing.T, g *group) (texts []string) {
	t.Helper()
	for place := range g.requests {
		d, err := g.decision(g.plan, g.cost, place)
		if err != nil {
			t.Fatal(err)
		}
		text := d.Outcome.String()
		if !d.Allowed() {
			text += fmt.Sprintf(", %d left", d.StrikesLeft)
		}
		if d.Struck {
			text += ", struck"
		}
		if d.Struck && d.Outcome == ratelimit.Banned {
			text += ", ban started"
		}
		texts = append(texts, text)
	}
	return texts
}
