package apikey_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
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
			if !newFormat(t, prefix).Check(key) {
				t.Errorf("%q is refused: keys in use must stay valid", key)
			}
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	format := newFormat(t, "pet_live_")
	key := knownKeys["pet_live_"][0]
	tests := map[string]string{
		"empty":                    "",
		"prefix alone":             "pet_live_",
		"another prefix":           "pet_test_" + key[9:],
		"no prefix":                key[9:],
		"another format's key":     knownKeys["pet_test_"][0],
		"lower case":               strings.ToLower(key),
		"one character less":       key[:len(key)-1],
		"one character more":       key + "0",
		"padding":                  key + "=",
		"percent encoding":         key + "%20",
		"space in front":           " " + key,
		"line feed behind":         key[:len(key)-1] + "\n",
		"two characters exchanged": key[:20] + key[21:22] + key[20:21] + key[22:],
	}
	for i := range key {
		for bit := range 8 {
			changed := []byte(key)
			changed[i] ^= 1 << bit
			tests["one bit changed in "+string(changed)] = string(changed)
		}
	}
	for name, bad := range tests {
		if format.Check(bad) {
			t.Errorf("%s: %q is accepted", name, bad)
		}
	}
}

// A body with a character outside of the alphabet is no key even if its checksum
// is right, which takes a key that the package itself would not make.
func TestCheckAlphabet(t *testing.T) {
	format := newFormat(t, "pet_live_")
	const rest = "fQ8rT2kLm9XwZ1aBcD3eFgH5iJk0P"
	for _, c := range []string{"-", "_", " ", "\x00", "=", "@", "[", "`", "{", "/", ":"} {
		body := "pet_live_" + c + rest
		if key := body + checksum(body); format.Check(key) {
			t.Errorf("%q is accepted", key)
		}
	}
	body := "pet_live_4" + rest
	if key := body + checksum(body); !format.Check(key) {
		t.Errorf("%q is refused, so that this test proves nothing", key)
	}
}

func TestGenerate(t *testing.T) {
	for _, prefix := range []string{"pet_live_", "a_", strings.Repeat("a", 31) + "_"} {
		format := newFormat(t, prefix)
		pattern := regexp.MustCompile("^" + format.Pattern() + "$")
		seen := map[string]bool{}
		for range 1000 {
			key := format.Generate().Reveal()
			if !format.Check(key) || !pattern.MatchString(key) || !strings.HasPrefix(key, prefix) {
				t.Fatalf("generated key %q is not of the format %s", key, format.Pattern())
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
	format := newFormat(t, "pet_live_")
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
		format, err := apikey.NewFormat(prefix)
		if err != nil {
			t.Errorf("prefix %q is refused: %v", prefix, err)
		} else if format.Prefix() != prefix {
			t.Errorf("Prefix() = %q, want %q", format.Prefix(), prefix)
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

func TestPattern(t *testing.T) {
	if got, want := newFormat(t, "pet_live_").Pattern(), "pet_live_[0-9A-Za-z]{36}"; got != want {
		t.Errorf("pattern %q, want %q", got, want)
	}
}

func TestNewKeyID(t *testing.T) {
	pattern := regexp.MustCompile(`^key_[0-9A-Za-z]{16}$`)
	a, b := apikey.NewKeyID(), apikey.NewKeyID()
	if !pattern.MatchString(a) || a == b {
		t.Errorf("key IDs %q and %q, want two different ones of the form %s", a, b, pattern)
	}
}
