package api

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestIdempotencyKey(t *testing.T) {
	long := strings.Repeat("x", 255)
	for text, want := range map[string]string{
		`"8e03978e-40d5-43e8-bc93-6894a57f9324"`: "8e03978e-40d5-43e8-bc93-6894a57f9324",
		"8e03978e-40d5-43e8-bc93-6894a57f9324":   "8e03978e-40d5-43e8-bc93-6894a57f9324",
		"order:7/a_b.c~+1==":                     "order:7/a_b.c~+1==",
		long:                                     long,
		`"x"`:                                    "x",
		`" !#[]~"`:                               " !#[]~",
		`"a\"b\\c"`:                              `a"b\c`,
		`"` + long + `"`:                         long,
		`"` + long[1:] + `\""`:                   long[1:] + `"`,
	} {
		if got, err := idempotencyKey(http.Header{"Idempotency-Key": {text}}); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", `"`, `""`, `'x'`, "a b", " a", "a,b", "a;p=1", "a\n", "ä", `a\b`, long + "x", `"x`, `x"`, `"a"b"`, `"a\b"`, `"a\"`, `"\"`, `"a", "b"`, `"a";p=1`, `"a";p="b"`,
		`"a" `, "\"\x7f\"", "\"\t\"", `"ä"`, `"` + long + `x"`, "?1", "@1", `("a")`,
	} {
		if got, err := idempotencyKey(http.Header{"Idempotency-Key": {text}}); err == nil {
			t.Errorf("%q: is taken as %q, want an error", text, got)
		}
	}
	if _, err := idempotencyKey(http.Header{"Idempotency-Key": {`"x"`, `"x"`}}); err == nil {
		t.Error("two lines are taken, want an error")
	}
	if got, err := idempotencyKey(http.Header{}); got != "" || err != nil {
		t.Errorf("no field: %q, %v, want none", got, err)
	}
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, text := range []string{`"x"`, `"a\"b"`, `"\\"`, `"`, ``, `x`} {
		f.Add(text)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	f.Fuzz(func(t *testing.T, text string) {
		key, err := idempotencyKey(http.Header{"Idempotency-Key": {text}})
		if err != nil {
			return
		}
		if again := `"` + quote.Replace(key) + `"`; again != text && key != text {
			t.Errorf("%q is taken as %q, which is written %q", text, key, again)
		}
		if err := store.CheckText(key); err != nil {
			t.Errorf("%q is taken as %q, which the store refuses: %v", text, key, err)
		}
	})
}

// The fingerprint is stored, so it must not change.
func TestFingerprint(t *testing.T) {
	duke := store.NewPet{Name: "Duke", CategoryID: 3, Status: store.Available}
	const stored = "39a7d1d34ef04e2e3f172993c6dc4bf2fc2cfbe5e99eec3208733bfd3b61d325"
	if got := fingerprintHex(duke); got != stored {
		t.Errorf("the fingerprint is %s, and was %s in a database", got, stored)
	}
	if got := fingerprintHex(store.NewPet{Name: "Duke", CategoryID: 3}); got != stored {
		t.Errorf("without the status, which is available by default, it is %s, want the same", got)
	}
	for _, other := range []store.NewPet{
		{Name: "Duk", CategoryID: 3}, {Name: "Duke", CategoryID: 4}, {Name: "Duke", CategoryID: -3}, {Name: "Duke", CategoryID: 3, Status: store.Sold},
	} {
		if fingerprintHex(other) == stored {
			t.Errorf("%+v has the fingerprint of %+v", other, duke)
		}
	}
}

func fingerprintHex(p store.NewPet) string {
	sum := fingerprintOf(p)
	return hex.EncodeToString(sum[:])
}
