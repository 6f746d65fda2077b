package apikey_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

func TestDigest(t *testing.T) {
	for _, length := range []int{0, 1, 45, 67, 68, 69, 1000} {
		key := strings.Repeat("k", length)
		if got := apikey.DigestOf(key); got != sha256.Sum256([]byte(key)) {
			t.Errorf("digest of a key of %d octets is %v, want its SHA-256", length, got)
		}
	}
	d := apikey.DigestOf("abc")
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-4
	if d.String() != want {
		t.Errorf("digest of abc is %s, want %s", d, want)
	}
	encoded, err := json.Marshal(map[string]apikey.Digest{"d": d})
	if err != nil || string(encoded) != `{"d":"`+want+`"}` {
		t.Errorf("JSON is %s, %v", encoded, err)
	}
	var back map[string]apikey.Digest
	if err := json.Unmarshal(encoded, &back); err != nil || back["d"] != d {
		t.Errorf("read back: %v, %v, want %v", back["d"], err, d)
	}
}

func TestDigestUnmarshalRefuses(t *testing.T) {
	good := apikey.DigestOf("abc")
	for _, bad := range []string{"", "ba78", good.String() + "00", good.String()[1:] + "g", good.String()[1:] + "\n"} {
		d := good
		if err := d.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
		if d != good {
			t.Errorf("%q is refused and still changes the digest", bad)
		}
	}
	var d apikey.Digest
	if err := d.UnmarshalText([]byte(strings.ToUpper(good.String()))); err != nil || d != good {
		t.Errorf("upper case: %v, %v", d, err)
	}
}

// FuzzDigest checks that a text is read if and only if it is 64 hexadecimal
// digits.
func FuzzDigest(f *testing.F) {
	f.Add(apikey.DigestOf("abc").String())
	f.Add("")
	f.Add(strings.Repeat("g", 64))
	f.Fuzz(func(t *testing.T, text string) {
		var d apikey.Digest
		err := d.UnmarshalText([]byte(text))
		raw, hexErr := hex.DecodeString(text)
		if want := hexErr == nil && len(raw) == len(d); (err == nil) != want {
			t.Errorf("%q: error %v, want it read: %v", text, err, want)
		}
		if err == nil && d.String() != strings.ToLower(text) {
			t.Errorf("%q is read as %v", text, d)
		}
	})
}
