package observe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// For any stream of decisions, the counts of a subject are at most the true ones, and
// are short of them by at most the decisions of the stream divided by the places.
func TestSummaryIsShortByAtMostItsShare(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		subjects := 1 + r.IntN(10*places)
		skew := 1 + r.Float64()*3
		var s summary
		type truth struct{ allowed, denied uint32 }
		want := map[string]truth{}
		n := 1 + r.IntN(20_000)
		for range n {
			i := int(float64(subjects) * math.Pow(r.Float64(), skew))
			name, allowed := fmt.Sprint(i), r.IntN(2) == 0
			s.count(uint64(i%7), name, allowed) // some have equal hashes
			v := want[name]
			if allowed {
				v.allowed++
			} else {
				v.denied++
			}
			want[name] = v
		}
		got := map[string]truth{}
		for _, c := range s.counts[:s.used] {
			if _, twice := got[c.subject]; twice {
				t.Errorf("seed %d: %s has two places", seed, c.subject)
			}
			got[c.subject] = truth{c.allowed, c.denied}
		}
		for name, w := range want {
			g := got[name]
			if g.allowed > w.allowed || g.denied > w.denied {
				t.Errorf("seed %d: %s is counted %v times, more than the true %v", seed, name, g, w)
			}
			if short := w.allowed + w.denied - g.allowed - g.denied; int(short) > n/places {
				t.Errorf("seed %d: %s is short by %d, more than %d of %d", seed, name, short, n/places, n)
			}
			if subjects <= places && g != w {
				t.Errorf("seed %d: of %d subjects, %s is counted %v times, want exactly %v", seed, subjects, name, g, w)
			}
		}
	}
}

func TestMemoryOfAnActivity(t *testing.T) {
	if size := unsafe.Sizeof(Activity{}); size > 1_500_000 {
		t.Errorf("an Activity has %d bytes, want at most 1.5 MB, as documented", size)
	}
}
