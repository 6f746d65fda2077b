package apikey_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

func TestSecretNeverShows(t *testing.T) {
	secret := newFormat(t, "pet_live_").Generate()
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
	secret := newFormat(t, "pet_live_").Generate()
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
