package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestCursorRoundTrip(t *testing.T) {
	for _, filter := range cursorFilters {
		for _, after := range []int64{1, 2, 1 << 31, 1<<53 - 1, 1<<63 - 1} {
			text := encodeCursor(filter, after)
			if got, ok := decodeCursor(text, filter); !ok || got != after {
				t.Errorf("decodeCursor(%q, %q) = %d, %t, want %d", text, filter, got, ok, after)
			}
			for i := range text {
				for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_= \n" {
					if changed := text[:i] + string(c) + text[i+1:]; changed != text {
						if _, ok := decodeCursor(changed, filter); ok {
							t.Errorf("the cursor %q is taken with another character: %q", text, changed)
						}
					}
				}
				if _, ok := decodeCursor(text[:i], filter); ok {
					t.Errorf("the cursor %q is taken when it is cut off", text)
				}
			}
			if url.QueryEscape(text) != text {
				t.Errorf("the cursor %q needs escapes in a query", text)
			}
		}
	}
}

func FuzzParseListQuery(f *testing.F) {
	for _, seed := range []string{
		"", "limit=20&status=sold", "limit=05", "limit=1;status=sold", "limit=%zz", "status[]=sold", "cursor=" + encodeCursor("", 9),
		"limit=5&limit=5", "%6cimit=5", "limit=%D9%A5", "x=%ff", "limit", "&&", "Limit=0",
	} {
		f.Add(seed)
	}
	limits := openapi.Range{Min: 1, Max: 100, Default: 20}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseListQuery(raw, limits)
		if err != nil {
			return
		}
		// What is accepted means what the query says, read in another way.
		values, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatalf("%q is accepted, and malformed: %v", raw, err)
		}
		if err := q.Validate(); err != nil || q.Limit > limits.Max {
			t.Errorf("%q is read as %+v, which is not valid: %v", raw, q, err)
		}
		limit := []string{strconv.Itoa(q.Limit)}
		if got := values["limit"]; len(got) != 0 && !slices.Equal(got, limit) || len(got) == 0 && q.Limit != limits.Default {
			t.Errorf("%q is read with limit %d", raw, q.Limit)
		}
		if got := strings.Join(values["status"], ","); got != string(q.Status) {
			t.Errorf("%q is read with status %q", raw, q.Status)
		}
		if _, given := values["cursor"]; given != (q.After > 0) {
			t.Errorf("%q is read with after %d", raw, q.After)
		}
	})
}

func FuzzMatches(f *testing.F) {
	f.Add(`"x", W/"y"`, `"y"`, true)
	f.Add(`*`, `"y"`, false)
	f.Add(`W/"`, `""`, false)
	f.Fuzz(func(t *testing.T, line, opaque string, strong bool) {
		etag := `"` + strings.ReplaceAll(opaque, `"`, "") + `"`
		if matches([]string{line}, etag, strong) && line != "*" && strings.Trim(line, " \t") != "*" && !strings.Contains(line, etag) {
			t.Errorf("%q matches %s, which is not in it", line, etag)
		}
		if matches([]string{line}, etag, true) && !matches([]string{line}, etag, false) {
			t.Errorf("%q matches %s by the strong comparison and not by the weak one", line, etag)
		}
		if !matches([]string{"W/" + etag + "," + etag}, etag, strong) {
			t.Errorf("a list with %s does not match it", etag)
		}
	})
}

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
	if got, err := idempotencyKey(http.Header{}); got != "" || err != nil {
		t.Errorf("no field: %q, %v, want none", got, err)
	}
}

// The fingerprint is stored, so it must not change.
func TestFingerprint(t *testing.T) {
	duke := store.NewPet{Name: "Duke", CategoryID: 3, Status: store.Available}
	hex := func(p store.NewPet) string { return fmt.Sprintf("%x", fingerprintOf(p)) }
	const stored = "39a7d1d34ef04e2e3f172993c6dc4bf2fc2cfbe5e99eec3208733bfd3b61d325"
	if got := hex(duke); got != stored {
		t.Errorf("the fingerprint is %s, and was %s in a database", got, stored)
	}
	if got := hex(store.NewPet{Name: "Duke", CategoryID: 3}); got != stored {
		t.Errorf("without the status, which is available by default, it is %s, want the same", got)
	}
	for _, other := range []store.NewPet{
		{Name: "Duk", CategoryID: 3}, {Name: "Duke", CategoryID: 4}, {Name: "Duke", CategoryID: -3}, {Name: "Duke", CategoryID: 3, Status: store.Sold},
	} {
		if hex(other) == stored {
			t.Errorf("%+v has the fingerprint of %+v", other, duke)
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	for accepts, all := range map[bool][]string{
		true: {
			"gzip", "GZip", "x-gzip", "deflate, gzip;q=1.0, *;q=0.5", "br , gzip;q=0.001", "*", "identity;q=0.5, gzip", "gzip, gzip;q=0", "identity;q=0, *",
			"zz;;, ;q=x, gzip", "identity, gzip",
		},
		false: {
			"", "identity", "gzip;q=0", "gzip;q=0.0, *", "br", "*;q=0", "gzip;q=1.1", "gzip;q=-1", "gzip;q=", "gzip;level=9", "gzip;q=0.5, identity",
			"gzi", "gzip gzip", "gzip;q=0, *",
		},
	} {
		for _, text := range all {
			if got := acceptsGzip([]string{text}); got != accepts {
				t.Errorf("Accept-Encoding %q accepts gzip: %t, want %t", text, got, accepts)
			}
		}
	}
}
