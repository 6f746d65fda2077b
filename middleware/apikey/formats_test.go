package apikey_test

import (
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

// Keys of several formats are verified by one Verifier, and the principal says which
// format a key has, also when the answer is cached.
func TestMoreFormats(t *testing.T) {
	live, test, old := newFormat(t, "pet_live_"), newFormat(t, "pet_test_"), newFormat(t, "pet_")
	store := newStore()
	v, err := apikey.NewVerifier(live, store, apikey.Options{
		MoreFormats: []*apikey.Format{test, old},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []*apikey.Format{live, test, old} {
		key := format.Generate().Reveal()
		store.put(key, apikey.Record{Principal: ann})
		for range 2 {
			p, err := v.Verify(t.Context(), key)
			if err != nil || p.Prefix != format.Prefix() || p.Owner != ann.Owner {
				t.Errorf("a key of %s: principal %v, error %v; want ann's with that prefix", format.Prefix(), p, err)
			}
		}
		if _, err := v.Verify(t.Context(), format.Generate().Reveal()); err != apikey.ErrUnknown {
			t.Errorf("a key of %s that was never issued: %v, want %v", format.Prefix(), err, apikey.ErrUnknown)
		}
		if _, err := v.Verify(t.Context(), damaged(key)); err != apikey.ErrMalformed {
			t.Errorf("a damaged key of %s: %v, want %v", format.Prefix(), err, apikey.ErrMalformed)
		}
	}
	calls(t, store, 6)

	// The same body with another prefix has another checksum and another digest.
	key := live.Generate().Reveal()
	store.put(key, apikey.Record{Principal: ann})
	if _, err := v.Verify(t.Context(), test.Prefix()+key[len(live.Prefix()):]); err != apikey.ErrMalformed {
		t.Errorf("a live key with the prefix of a test key: %v, want %v", err, apikey.ErrMalformed)
	}
	if _, err := v.Verify(t.Context(), newFormat(t, "pet_dev_").Generate().Reveal()); err != apikey.ErrMalformed {
		t.Errorf("a key of a format that is not accepted: %v, want %v", err, apikey.ErrMalformed)
	}
}

// The service decides about its formats once: later changes to the slice have no effect.
func TestMoreFormatsAreCopied(t *testing.T) {
	test := newFormat(t, "pet_test_")
	more := []*apikey.Format{test}
	store := newStore()
	v, err := apikey.NewVerifier(newFormat(t, "pet_live_"), store, apikey.Options{MoreFormats: more})
	if err != nil {
		t.Fatal(err)
	}
	more[0] = newFormat(t, "pet_dev_")
	key := test.Generate().Reveal()
	store.put(key, apikey.Record{Principal: ann})
	if _, err := v.Verify(t.Context(), key); err != nil {
		t.Errorf("a test key: %v, want it valid", err)
	}
}
