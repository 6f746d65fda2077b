package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestKeyIsActive(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  store.Key
		want bool
	}{
		{"has no end", store.Key{}, true},
		{"expires later", store.Key{NewKey: store.NewKey{Expires: noon.Add(1)}}, true},
		{"expires now", store.Key{NewKey: store.NewKey{Expires: noon}}, false},
		{"has expired", store.Key{NewKey: store.NewKey{Expires: noon.Add(-1)}}, false},
		{"is revoked later", store.Key{Revoked: noon.Add(1)}, true},
		{"is revoked now", store.Key{Revoked: noon}, false},
		{"was revoked", store.Key{Revoked: noon.Add(-1)}, false},
		{"was revoked before it expires", store.Key{Revoked: noon.Add(-1), NewKey: store.NewKey{Expires: noon.Add(1)}}, false},
		{"is revoked after it has expired", store.Key{Revoked: noon.Add(1), NewKey: store.NewKey{Expires: noon.Add(-1)}}, false},
	} {
		if got := tt.key.Active(noon); got != tt.want {
			t.Errorf("a key that %s: Active = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestKeyAsRecord(t *testing.T) {
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	key := store.Key{ID: "key_1", NewKey: store.NewKey{Owner: "ada", Plan: "free", Expires: noon}, Revoked: noon.Add(1)}
	want := apikey.Record[apikey.Principal]{
		Principal: apikey.Principal{KeyID: "key_1", Owner: "ada", Plan: plan},
		Expires:   noon,
		Revoked:   noon.Add(1),
	}
	if got := key.Record(plan); got != want {
		t.Errorf("Record = %+v, want %+v", got, want)
	}
}

func TestRotationNeverLengthensTheOldKeysLife(t *testing.T) {
	for _, tt := range []struct {
		name          string
		overlap       time.Duration
		expires, want time.Time
	}{
		{"no end, no overlap", 0, time.Time{}, noon},
		{"no end", time.Hour, time.Time{}, noon.Add(time.Hour)},
		{"ends after the overlap", time.Hour, noon.Add(2 * time.Hour), noon.Add(time.Hour)},
		{"ends within the overlap", time.Hour, noon.Add(time.Minute), noon.Add(time.Minute)},
		{"has ended", time.Hour, noon.Add(-time.Minute), noon.Add(-time.Minute)},
	} {
		r := store.Rotation{At: noon, Overlap: tt.overlap}
		if got := r.OldExpires(tt.expires); !got.Equal(tt.want) {
			t.Errorf("%s: OldExpires = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestStatus(t *testing.T) {
	for status, want := range map[store.Status]bool{
		store.Available: true, store.Pending: true, store.Sold: true,
		"": false, "Sold": false, "sold ": false,
	} {
		if got := status.Valid(); got != want {
			t.Errorf("Status(%q).Valid() = %v, want %v", status, got, want)
		}
	}
}

func TestErrorsHoldNoPartOfAKey(t *testing.T) {
	for _, text := range []string{"abcde", "abc", "ab\x00c", "ab\xffc", "abé", "ab" + strings.Repeat("c", 300)} {
		k := store.NewKey{Digest: store.Digest{1}, LastFour: text, Name: "n", Owner: "o", Plan: "p", Created: noon}
		err := k.Validate()
		if !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "ab") {
			t.Errorf("Validate with %q = %v, want an error that wraps ErrInvalid and does not repeat the characters", text, err)
		}
	}
}
