//go:build unix

package database_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Both engines give the same answers to the same calls, in a random order and with values at
// the ends of their ranges.
func TestEnginesAgree(t *testing.T) {
	const calls = 500
	for mode, parameters := range map[string]string{"prepared": "", "exec": "&default_query_exec_mode=exec"} {
		t.Run(mode, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			a := newEngine(t, filepath.Join(t.TempDir(), "petstore.db"), seed)
			b := newEngine(t, postgrestest.Database(t)+parameters, seed)
			for n := range calls {
				call, want := a.call(t.Context())
				_, got := b.call(t.Context())
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("call %d, %s (-SQLite +PostgreSQL):\n%s", n, call, diff)
				}
			}
		})
	}
}

// kind is what callers branch on.
func kind(err error) string {
	if err == nil {
		return ""
	}
	for _, k := range []error{store.ErrNotFound, store.ErrInvalid, store.ErrExists, store.ErrInactive, store.ErrMismatch, store.ErrCondition, store.ErrUnavailable} {
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
	switch n := e.IntN(17); n {
	case 0:
		p := e.pet()
		pet, err := s.CreatePet(ctx, p)
		return fmt.Sprintf("CreatePet %.200q", fmt.Sprint(p)), answer{kind(err), []any{e.known(pet)}}
	case 1, 2:
		p, k := e.pet(), store.IdempotencyKey{Owner: e.text(), Key: e.text(), Fingerprint: [32]byte{byte(e.IntN(2)), 0xff}, At: e.later()}
		pet, replayed, err := s.CreatePetIf(ctx, p, &k, nil)
		return fmt.Sprintf("Once %.200q %.200q", fmt.Sprint(p), fmt.Sprint(k)), answer{kind(err), []any{e.known(pet), replayed}}
	case 3:
		p, q, want := e.pet(), e.query(), e.IntN(4)
		k := &store.IdempotencyKey{Owner: pick(e, "o", e.text()), Key: pick(e, "k", e.text()), At: e.later()}
		if e.IntN(2) == 0 {
			k = nil
		}
		var seen []any
		pet, replayed, err := s.CreatePetIf(ctx, p, k, func(list func(store.ListQuery) ([]store.Pet, bool, error)) (bool, error) {
			pets, more, err := list(q)
			for i := range pets {
				pets[i] = e.known(pets[i])
			}
			seen = []any{pets, more, kind(err)}
			return want > 0, err
		})
		return fmt.Sprintf("If %.200q %v %v", fmt.Sprint(p), k, q), answer{kind(err), []any{e.known(pet), replayed, seen}}
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
		k, by := e.newKey(), e.actor()
		key, err := s.CreateKey(ctx, k, by)
		return fmt.Sprintf("CreateKey %v", k.Created), answer{kind(err), []any{e.knownKey(key)}}
	case 7:
		k, by := e.newKey(), e.actor()
		key, err := s.CreateFirstKey(ctx, k, by)
		return "CreateFirstKey", answer{kind(err), []any{e.knownKey(key)}}
	case 8:
		key, err := s.KeyByDigest(ctx, e.digest())
		return "KeyByDigest", answer{kind(err), []any{e.knownKey(key)}}
	case 9:
		id, at := e.keyID(), e.time()
		key, err := s.RevokeKey(ctx, id, at, e.actor())
		return fmt.Sprintf("RevokeKey %.40q %v", id, at), answer{kind(err), []any{e.knownKey(key)}}
	case 10:
		id := e.keyID()
		r := store.Rotation{Digest: e.digest(), LastFour: "abcd", At: e.time(), Overlap: pick(e, 0, time.Second, time.Nanosecond, -1, math.MaxInt64)}
		if e.IntN(2) == 0 {
			r.Expires = e.time()
		}
		key, err := s.RotateKey(ctx, id, r, e.actor())
		return fmt.Sprintf("RotateKey %.40q %v", id, r), answer{kind(err), []any{e.knownKey(key)}}
	case 11:
		keys, err := s.ListKeys(ctx)
		times := []any{}
		for _, k := range keys { // IDs are random, and the order within one instant is theirs
			times = append(times, k.Created)
		}
		return "ListKeys", answer{kind(err), times}
	case 12:
		a := store.AuditEntry{At: e.time(), Actor: "a", From: pick(e, "", e.text()), Action: pick(e, "x", e.text()), Target: pick(e, "t", e.text()), Detail: pick(e, "", e.text())}
		return "AddAudit", answer{kind(s.AddAudit(ctx, a)), nil}
	case 13:
		q := store.AuditQuery{Limit: pick(e, 1, 10, 10_000, 0, -1)}
		if e.IntN(2) == 0 {
			q.Since = e.time()
		}
		entries, err := s.ListAudit(ctx, q)
		out := []any{}
		for _, a := range entries {
			for id, n := range e.keys {
				a.Target, a.Detail = strings.ReplaceAll(a.Target, id, fmt.Sprint(n)), strings.ReplaceAll(a.Detail, id, fmt.Sprint(n))
			}
			a.ID = 0
			out = append(out, a)
		}
		return fmt.Sprint("ListAudit ", q), answer{kind(err), out}
	case 14:
		var uses []store.DailyUse
		for range e.IntN(5) {
			uses = append(uses, store.DailyUse{Owner: e.text(), Day: store.Day(e.time()), Allowed: int64(e.IntN(5)), Denied: pick[int64](e, 0, 1, 2, 3, math.MaxInt32, -1)})
		}
		return "AddDailyUse", answer{kind(s.AddDailyUse(ctx, uses...)), nil}
	case 15:
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
