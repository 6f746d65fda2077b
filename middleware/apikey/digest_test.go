package apikey_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/apikey"
)

func TestDigest(t *testing.T) {
	for _, length := range []int{0, 1, 45, 67, 68, 69, 1000} {
		key := strings.Repeat("k", length)
		if got := apikey.DigestOf(key); got != sha256.Sum256([]byte(key)) {
			t.Errorf("digest of a key of %d octets is %v, want its SHA-256", length, got)
		}
	}
}

var (
	_ driver.Valuer = apikey.Digest{}
	_ sql.Scanner   = (*apikey.Digest)(nil)
)

// A driver may use the bytes that it gives to Scan again, and a statement those of Value
// after the digest has changed.
func TestDigestSharesNoBytes(t *testing.T) {
	want := apikey.DigestOf("abc")
	d := want
	value, err := driver.DefaultParameterConverter.ConvertValue(d) // as database/sql does
	testcheck.NoError(t, err)
	d = apikey.DigestOf("another")
	if !bytes.Equal(value.([]byte), want[:]) {
		t.Error("the value is not the 32 bytes, or changes with the digest")
	}
	column := bytes.Clone(want[:])
	testcheck.NoError(t, d.Scan(column))
	clear(column)
	if d != want {
		t.Error("the digest changes with the column")
	}
}

func TestDigestScan(t *testing.T) {
	d, other := apikey.DigestOf("abc"), apikey.DigestOf("another")
	text := fmt.Sprintf("%x", d)
	for name, tt := range map[string]struct {
		column any
		want   string // in the error; "": none
	}{
		"bytes":                        {d[:], ""},
		"text":                         {text, ""},
		"text in upper case":           {strings.ToUpper(text), ""},
		"text as bytes, as from MySQL": {[]byte(text), ""},
		"NULL":                         {nil, "column of type <nil>"},
		"number":                       {int64(7), "column of type int64"},
		"an MD5 sum as text":           {"d41d8cd98f00b204e9800998ecf8427e", "text of 32 bytes"},
		"31 bytes":                     {d[:31], "32 bytes or 64 hexadecimal digits, got a column of 31 bytes"},
		"63 digits":                    {text[1:], "column of 63 bytes"},
		"not hexadecimal":              {text[1:] + "g", "invalid byte"},
		"PostgreSQL's bytea":           {`\x` + text, "column of 66 bytes"},
	} {
		got := other
		err := got.Scan(tt.column)
		switch {
		case tt.want == "" && (err != nil || got != d):
			t.Errorf("%s: read as %x, %v; want %x", name, got, err, d)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || got != other):
			t.Errorf("%s: error %v, want one that says %q, and the digest unchanged", name, err, tt.want)
		}
	}
}

// A text is read if and only if it is 64 hexadecimal digits, or any 32 bytes.
func FuzzDigest(f *testing.F) {
	f.Add(fmt.Sprintf("%x", apikey.DigestOf("abc")))
	f.Add("")
	f.Add(strings.Repeat("g", 64))
	f.Fuzz(func(t *testing.T, text string) {
		var d apikey.Digest
		err := d.Scan(text)
		raw, hexErr := hex.DecodeString(text)
		if want := hexErr == nil && len(raw) == len(d) || len(text) == len(d); (err == nil) != want {
			t.Errorf("%q: error %v, want it read: %v", text, err, want)
		}
		if err == nil && fmt.Sprintf("%x", d) != strings.ToLower(text) && string(d[:]) != text {
			t.Errorf("%q is read as %x", text, d)
		}
	})
}

func TestSecretNeverShows(t *testing.T) {
	secret := newFormat("pet_live_").Generate()
	key := secret.Reveal()

	type visible struct{ Secret apikey.Secret }
	type hidden struct{ secret apikey.Secret }
	shown := map[string]string{
		"Print":       fmt.Sprint(secret),
		"error":       fmt.Errorf("key %v: %w", secret, errors.New("x")).Error(),
		"panic value": fmt.Sprint(any(secret)),
	}
	values := map[string]any{
		"value": secret, "pointer": &secret, "slice": []apikey.Secret{secret}, "map": map[string]apikey.Secret{"k": secret},
		"exported field": visible{secret}, "unexported field": hidden{secret}, "pointer to it": &hidden{secret},
		"interface": []any{secret},
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%50v", "%-50.3v"} {
			shown[verb+" of "+name] = fmt.Sprintf(verb, v)
		}
		var text, asJSON strings.Builder
		slog.New(slog.NewTextHandler(&text, nil)).Info("m", "k", v)
		slog.New(slog.NewJSONHandler(&asJSON, nil)).Info("m", "k", v)
		shown["slog text of "+name], shown["slog JSON of "+name] = text.String(), asJSON.String()
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Errorf("JSON of %s: %v", name, err)
		}
		shown["JSON of "+name] = string(encoded)
	}
	encoded, err := xml.Marshal(visible{secret})
	if err != nil {
		t.Error(err)
	}
	shown["XML"] = string(encoded)

	hex := fmt.Sprintf("%x", key)
	for how, text := range shown {
		for _, part := range []string{key, key[9:], key[len(key)-10:], hex[18:30], strings.ToUpper(hex[18:30])} {
			if strings.Contains(text, part) {
				t.Errorf("%s shows the key: %s", how, text)
			}
		}
	}
	for _, how := range []string{"Print", "%v of value", "%+v of value", "%#v of value", "%d of value"} {
		if shown[how] != "[redacted]" {
			t.Errorf("%s is %q, want [redacted]", how, shown[how])
		}
	}
	if got, want := shown["JSON of exported field"], `{"Secret":"[redacted]"}`; got != want {
		t.Errorf("JSON is %s, want %s", got, want)
	}
}

func TestSecretParts(t *testing.T) {
	secret := newFormat("pet_live_").Generate()
	key := secret.Reveal()
	if got, want := secret.LastFour(), key[len(key)-4:]; got != want {
		t.Errorf("LastFour() = %q, want %q", got, want)
	}
	if secret.Digest() != apikey.DigestOf(key) {
		t.Error("Digest() is not that of the key")
	}
	var zero apikey.Secret
	if zero.Reveal() != "" || zero.LastFour() != "" || fmt.Sprint(zero) != "[redacted]" {
		t.Errorf("the zero Secret reveals %q, ends in %q, prints %v; want no key, redacted", zero.Reveal(), zero.LastFour(), zero)
	}
}
