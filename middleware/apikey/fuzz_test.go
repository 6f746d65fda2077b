package apikey_test

import (
	"context"
	"errors"
	"hash/crc32"
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// checksum computes what stands behind a prefix and a body, in another way than
// the package does.
func checksum(s string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	text := ""
	for v := crc32.ChecksumIEEE([]byte(s)); len(text) < 6; v /= 62 {
		text = string(digits[v%62]) + text
	}
	return text
}

// FuzzCheck holds Check against the published pattern and the checksum, on texts
// as they come and on the same with a right checksum added. A Verifier must agree,
// and look up nothing that Check refuses.
func FuzzCheck(f *testing.F) {
	for _, keys := range knownKeys {
		for _, key := range keys {
			f.Add(key)
			f.Add(key[:len(key)-6])
			f.Add(key[:len(key)-1])
		}
	}
	f.Add("")
	f.Add("pet_live_" + strings.Repeat("é", 15))
	format := newFormat(f, "pet_live_")
	pattern := regexp.MustCompile("^(?:" + format.Pattern() + `)\z`)
	store := newStore()
	verifier := newVerifier(f, store, apikey.Options{})

	f.Fuzz(func(t *testing.T, text string) {
		for _, key := range []string{text, text + checksum(text)} {
			want := pattern.MatchString(key) && key[len(key)-6:] == checksum(key[:len(key)-6])
			if got := format.Check(key); got != want {
				t.Errorf("Check(%q) = %v, want %v", key, got, want)
			}
			before := store.count()
			_, err := verifier.Verify(context.Background(), key)
			if !errors.Is(err, bearer.ErrInvalid) || errors.Is(err, apikey.ErrMalformed) == want {
				t.Errorf("Verify(%q): %v, want it unknown if Check accepts it, and malformed otherwise", key, err)
			}
			if !want && store.count() != before {
				t.Errorf("%q was looked up, though Check refuses it", key)
			}
		}
	})
}
