//go:build unix

package database_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// An engine makes the calls of its seed.
type engine struct {
	*rand.Rand
	s    store.Store
	pets map[int64]int // by ID: the order in which they were created, since engines skip different IDs
	ids  []int64
	keys map[string]int // likewise
	now  time.Time
	kids []string
}

func newEngine(t *testing.T, name string, seed uint64) *engine {
	t.Helper()
	s, err := database.Open(t.Context(), name, database.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &engine{Rand: rand.New(rand.NewPCG(seed, 0)), s: s, pets: map[int64]int{0: 0}, keys: map[string]int{}, now: time.Date(2026, 5, 4, 12, 0, 0, 999, time.UTC)}
}

// pick returns one of the values.
func pick[T any](e *engine, all ...T) T { return all[e.IntN(len(all))] }

func (e *engine) text() string {
	return pick(e, "ada", "Ada", "ädä", "a", "a b", "b", "B", "z", "ß", "日本", "😀", "\ufeff", "\u2028", "'", `\`, "%", "NULL", "", " ",
		"a\x00b", "\xff", "a\n", strings.Repeat("😀", 255), strings.Repeat("x", 256), strings.Repeat("y", 1<<17), "\ufffd", "\u00a0")
}

func (e *engine) time() time.Time {
	base := time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("X", 3600*5+1800))
	return pick(e, base, base.Add(time.Duration(e.IntN(5))*time.Second), base.Add(time.Duration(e.IntN(3000))), base.Add(24*time.Hour), base.Add(24*time.Hour-time.Microsecond),
		base.AddDate(0, 0, -e.IntN(4)), time.Unix(0, 0), time.Unix(0, -1), time.Unix(-1e9, 1), time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC))
}

// later is the time of a request. It does not go back by days: which expired requests are
// removed first is left to the engine.
func (e *engine) later() time.Time {
	e.now = e.now.Add(pick(e, 0, 1, time.Microsecond, time.Hour, 24*time.Hour-time.Microsecond, 24*time.Hour))
	return e.now
}

func (e *engine) number() int64 {
	return pick(e, 0, 1, 2, -1, math.MaxInt64, math.MinInt64, int64(e.IntN(100)), math.MaxInt32+1)
}

func (e *engine) status() store.Status {
	return pick(e, "", store.Available, store.Pending, store.Sold, store.Status("gone"))
}

func (e *engine) pet() store.NewPet {
	return store.NewPet{Name: e.text(), CategoryID: e.number(), Status: e.status()}
}

func (e *engine) id() int64 {
	if len(e.ids) > 0 && e.IntN(4) > 0 {
		return e.ids[e.IntN(len(e.ids))]
	}
	return pick[int64](e, 0, -1, math.MaxInt64, math.MinInt64)
}

func (e *engine) keyID() string {
	if len(e.kids) > 0 && e.IntN(4) > 0 {
		return e.kids[e.IntN(len(e.kids))]
	}
	return e.text()
}

// known returns a pet with the number of its creation as its ID.
func (e *engine) known(p store.Pet) store.Pet {
	if p.ID == 0 {
		return p
	}
	if _, ok := e.pets[p.ID]; !ok {
		e.ids = append(e.ids, p.ID)
		e.pets[p.ID] = len(e.ids)
	}
	p.ID = int64(e.pets[p.ID])
	return p
}

// knownKey does the same for a key.
func (e *engine) knownKey(k store.Key) store.Key {
	if k.ID == "" {
		return k
	}
	if _, ok := e.keys[k.ID]; !ok {
		e.kids = append(e.kids, k.ID)
		e.keys[k.ID] = len(e.kids)
	}
	k.ID = fmt.Sprint(e.keys[k.ID])
	return k
}

func (e *engine) actor() store.Actor {
	return store.Actor{Name: pick(e, "ada", "ada", "ada", e.text()), From: pick(e, "", "::1", e.text())}
}

func (e *engine) digest() store.Digest { return store.Digest{byte(e.IntN(40)), '\\', 0xff} }

func (e *engine) query() store.ListQuery {
	return store.ListQuery{Limit: pick(e, 1, 3, 20, 1000, 0, -1, 1001, math.MaxInt), Status: e.status(), After: e.id()}
}

func (e *engine) newKey() store.NewKey {
	k := store.NewKey{Digest: e.digest(), LastFour: pick(e, "abcd", "abcd", "ää", "abc", `\'"%`), Name: pick(e, "n", e.text()), Owner: pick(e, "o", e.text()), Plan: "p", Created: e.time(),
		Quotas: pick(e, nil, []string{}, []string{"1/s"}, []string{"NULL", `"`, `\`, "{}", ","}, []string{""}), Limits: pick(e, nil, nil, []string{"1/minute", "10/hour"}, []string{"x"})}
	if e.IntN(2) == 0 {
		k.Expires = e.time()
	}
	return k
}
