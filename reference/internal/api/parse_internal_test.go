package api

import (
	"net/url"
	"regexp"
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
			if url.QueryEscape(text) != text {
				t.Errorf("the cursor %q needs escapes in a query", text)
			}
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(encodeCursor("", 1), "")
	f.Add(encodeCursor(store.Sold, 1<<53), "sold")
	f.Add("AQAAAAAAAAAAFBaS1zU\n", "")
	f.Fuzz(func(t *testing.T, text, filter string) {
		after, ok := decodeCursor(text, store.Status(filter))
		if !ok {
			return
		}
		if encodeCursor(store.Status(filter), after) != text || after < 1 {
			t.Errorf("decodeCursor(%q, %q) takes a cursor that encodeCursor does not make", text, filter)
		}
	})
}

var canonical = regexp.MustCompile(`^[1-9][0-9]*$`)

func FuzzParsePetID(f *testing.F) {
	for _, seed := range []string{"1", "0", "01", "+1", "9223372036854775807", "9223372036854775808", "1\x00", "٣", "1e3", " 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := parsePetID(text)
		n, err := strconv.ParseInt(text, 10, 64)
		if want := canonical.MatchString(text) && err == nil; ok != want || ok && id != n {
			t.Errorf("parsePetID(%q) = %d, %t, want %d, %t", text, id, ok, n, want)
		}
	})
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
