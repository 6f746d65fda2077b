//go:build unix

package database_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Both engines give the same answers to the same calls, in a random order and with values at
// the ends of their ranges. Keys have a model: see TestKeysAgreeWithAModel.
func TestEnginesAgree(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	lite := newEngine(t, filepath.Join(t.TempDir(), "petstore.db"), seed)
	prepared, exec := newEngine(t, postgrestest.Database(t), seed), newEngine(t, postgrestest.Database(t)+"&default_query_exec_mode=exec", seed)
	agree(t, lite, map[string]*engine{"prepared": prepared, "exec": exec})
}

// agree makes calls of an engine on SQLite, and the same ones of others on PostgreSQL.
func agree(t *testing.T, lite *engine, others map[string]*engine) {
	t.Helper()
	for n := range 300 {
		call, want := lite.call(t.Context())
		for name, e := range others {
			if _, got := e.call(t.Context()); !cmp.Equal(want, got) {
				t.Fatalf("call %d, %s (-SQLite +PostgreSQL, %s):\n%s", n, call, name, cmp.Diff(want, got))
			}
		}
	}
}

// kind is what callers branch on.
func kind(err error) string {
	if err == nil {
		return ""
	}
	for _, k := range []error{store.ErrNotFound, store.ErrInvalid, store.ErrMismatch, store.ErrUnavailable} {
		if errors.Is(err, k) {
			return k.Error()
		}
	}
	return "other: " + err.Error()
}

// An answer is what a call returned.
type answer struct {
	Err    string
	Values []any
}

// call makes one call. It returns what it called, and the answer without what each engine
// chooses for itself.
func (e *engine) call(ctx context.Context) (string, answer) {
	s := e.s
	switch n := e.IntN(11); n {
	case 0:
		p := e.pet()
		pet, err := s.CreatePet(ctx, p)
		return fmt.Sprintf("CreatePet %.200q", fmt.Sprint(p)), answer{kind(err), []any{e.known(pet)}}
	case 1, 2, 3:
		p, k := e.pet(), store.IdempotencyKey{Owner: e.text(), Key: e.text(), Fingerprint: [32]byte{byte(e.IntN(2)), 0xff}, At: e.later()}
		pet, replayed, err := s.CreatePetOnce(ctx, p, k)
		return fmt.Sprintf("Once %.200q %.200q", fmt.Sprint(p), fmt.Sprint(k)), answer{kind(err), []any{e.known(pet), replayed}}
	case 4:
		id := e.id()
		pet, err := s.Pet(ctx, id)
		return fmt.Sprint("Pet ", id), answer{kind(err), []any{e.known(pet)}}
	case 5:
		q := e.query()
		pets, more, err := s.ListPets(ctx, q)
		for i := range pets {
			pets[i] = e.known(pets[i])
		}
		return fmt.Sprint("ListPets ", q), answer{kind(err), []any{pets, more}}
	case 6:
		a := store.AuditEntry{At: e.time(), Actor: "a", From: pick(e, "", e.text()), Action: pick(e, "x", e.text()), Target: pick(e, "t", e.text()), Detail: pick(e, "", e.text())}
		return "AddAudit", answer{kind(s.AddAudit(ctx, a)), nil}
	case 7:
		q := store.AuditQuery{Limit: pick(e, 1, 10, 10_000, 0, -1)}
		if e.IntN(2) == 0 {
			q.Since = e.time()
		}
		entries, err := s.ListAudit(ctx, q)
		out := []any{}
		for _, a := range entries {
			a.ID = 0
			out = append(out, a)
		}
		return fmt.Sprint("ListAudit ", q), answer{kind(err), out}
	case 8:
		var uses []store.DailyUse
		for range e.IntN(5) {
			uses = append(uses, store.DailyUse{Owner: e.text(), Day: store.Day(e.time()), Allowed: int64(e.IntN(5)), Denied: pick[int64](e, 0, 1, 2, 3, math.MaxInt32, -1)})
		}
		return "AddDailyUse", answer{kind(s.AddDailyUse(ctx, uses...)), nil}
	case 9:
		owner, since := e.text(), pick(e, time.Time{}, e.time())
		if e.IntN(8) == 0 {
			return "Prune", answer{kind(s.PruneDailyUse(ctx, since)), nil}
		}
		uses, err := s.ListDailyUse(ctx, owner, since)
		return fmt.Sprintf("ListDailyUse %.30q %v", owner, since), answer{kind(err), []any{uses}}
	default:
		since := pick(e, time.Time{}, e.time())
		if e.IntN(3) == 0 {
			uses, err := s.ListDeprecatedUse(ctx, since)
			return fmt.Sprint("ListDeprecatedUse ", since), answer{kind(err), []any{uses}}
		}
		var uses []store.DeprecatedUse
		for range e.IntN(5) {
			uses = append(uses, store.DeprecatedUse{Operation: pick(e, "getPet", e.text()), Owner: e.text(), Count: pick[int64](e, 1, 2, 3, 0, math.MaxInt32), Last: e.time()})
		}
		return "AddDeprecatedUse", answer{kind(s.AddDeprecatedUse(ctx, uses...)), nil}
	}
}

// An engine makes the calls of its seed.
type engine struct {
	*rand.Rand
	s    store.Store
	pets map[int64]int // by ID: the order in which they were created, since engines skip different IDs
	ids  []int64
	now  time.Time
}

func newEngine(t *testing.T, name string, seed uint64) *engine {
	t.Helper()
	s, err := database.Open(t.Context(), name, database.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return &engine{Rand: rand.New(rand.NewPCG(seed, 0)), s: s, pets: map[int64]int{0: 0}, now: time.Date(2026, 5, 4, 12, 0, 0, 999, time.UTC)}
}

// again returns an engine that goes on with other calls on a store.
func (e *engine) again(s store.Store) *engine {
	return &engine{Rand: rand.New(rand.NewPCG(uint64(len(e.ids)), 1)), s: s, pets: maps.Clone(e.pets), ids: slices.Clone(e.ids), now: e.now}
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

func (e *engine) query() store.ListQuery {
	return store.ListQuery{Limit: pick(e, 1, 3, 20, 1000, 0, -1, 1001, math.MaxInt), Status: e.status(), After: e.id()}
}
