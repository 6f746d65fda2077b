package apikey_test

import (
	"context"
	"errors"
	"hash/crc32"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// Keys outlive programs. These were computed by another one.
var knownKeys = map[string][]string{
	"pet_live_": {
		"pet_live_4fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P44UjKO",
		"pet_live_0000000000000000000000000000001PRvVh",
		"pet_live_9Ul1HBIuCfSWsns28kKUyR8dLNjI0h000gJI", // a checksum with zeros in front
	},
	"pet_test_": {"pet_test_4fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P10VzEl"},
	"a_":        {"a_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz4S2oRw"},
}

func TestCheckKnownKeys(t *testing.T) {
	for prefix, keys := range knownKeys {
		for _, key := range keys {
			if !newFormat(prefix).Check(key) {
				t.Errorf("%q is refused: keys in use must stay valid", key)
			}
		}
	}
}

func TestGenerate(t *testing.T) {
	for _, prefix := range []string{"pet_live_", "a_", strings.Repeat("a", 31) + "_"} {
		format := newFormat(prefix)
		pattern := regexp.MustCompile("^" + prefix + "[0-9A-Za-z]{36}$")
		seen := map[string]bool{}
		for range 1000 {
			key := format.Generate().Reveal()
			if !format.Check(key) || !pattern.MatchString(key) {
				t.Fatalf("generated key %q is not of the form %s", key, pattern)
			}
			if seen[key] {
				t.Fatalf("key %q is generated twice", key)
			}
			seen[key] = true
		}
	}
}

// Taking a random octet modulo 62 would make eight characters a quarter more
// frequent than the others.
func TestGenerateHasNoBias(t *testing.T) {
	format := newFormat("pet_live_")
	const keys = 8000
	counts := map[rune]int{}
	for range keys {
		for _, c := range format.Generate().Reveal()[9 : 9+30] {
			counts[c]++
		}
	}
	if len(counts) != 62 {
		t.Errorf("%d different characters, want 62", len(counts))
	}
	mean := keys * 30.0 / 62
	for c, n := range counts {
		// Seven standard deviations: once in ten thousand million runs by chance.
		if math.Abs(float64(n)-mean) > 7*math.Sqrt(mean) {
			t.Errorf("%q occurs %d times, want about %.0f", c, n, mean)
		}
	}
}

func TestNewFormatPrefix(t *testing.T) {
	for _, prefix := range []string{"a_", "pet_live_", "Pets2_test_", strings.Repeat("a", 31) + "_"} {
		if _, err := apikey.NewFormat(prefix); err != nil {
			t.Errorf("prefix %q is refused: %v", prefix, err)
		}
	}
	for _, prefix := range []string{
		"", "_", "pet", "pet_live", "_pet_", "pet__live_", "0pets_", "9pets_", "pet-live_", "pet live_", "pét_", "pet.", "pet_\n_",
		strings.Repeat("a", 32) + "_",
	} {
		if _, err := apikey.NewFormat(prefix); err == nil {
			t.Errorf("prefix %q is accepted", prefix)
		}
	}
	_, err := apikey.NewFormat("note_live")
	const want = `apikey: the prefix must have 2 to 32 characters, begin with a letter, ` +
		`and consist of words of letters and digits, each followed by _, such as pet_live_, got "note_live"`
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestNewKeyID(t *testing.T) {
	pattern := regexp.MustCompile(`^key_[0-9A-Za-z]{16}$`)
	a, b := apikey.NewKeyID(), apikey.NewKeyID()
	if !pattern.MatchString(a) || a == b {
		t.Errorf("key IDs %q and %q, want two different ones of the form %s", a, b, pattern)
	}
}

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
	for _, c := range []string{"-", "_", "\x00", "=", "@", "[", "`", "{", "/", ":"} {
		f.Add("pet_live_" + c + "fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P") // gets a right checksum
	}
	for i := range knownKeys["pet_live_"][0] {
		for bit := range 8 {
			changed := []byte(knownKeys["pet_live_"][0])
			changed[i] ^= 1 << bit
			f.Add(string(changed))
		}
	}
	f.Add("")
	f.Add("pet_live_" + strings.Repeat("é", 15))
	format := newFormat("pet_live_")
	pattern := regexp.MustCompile(`^pet_live_[0-9A-Za-z]{36}\z`)
	store := newStore()
	verifier := newVerifier(store, apikey.Options{})

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
