package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
)

// What the document says of all paths holds for its own path, too.
func TestDocumentPathIsLikeOthers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const allow = "GET, HEAD, OPTIONS"
	if resp, err := http.DefaultClient.Do(optionsOf(t, "http://"+s.Addr+"/openapi.json")); err != nil {
		t.Fatal(err)
	} else if resp.StatusCode != 204 || resp.Header.Get("Allow") != allow {
		t.Errorf("OPTIONS /openapi.json: %d with Allow %q, want 204 with %q", resp.StatusCode, resp.Header.Get("Allow"), allow)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "TRACE", "get"} {
		resp := s.Do(t, none(contract.Request{Method: method, Target: "/openapi.json"}))
		want(t, resp, 405, "method_not_allowed")
		if got := resp.Header.Get("Allow"); got != allow {
			t.Errorf("%s /openapi.json: Allow is %q, want %q", method, got, allow)
		}
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		want(t, s.Do(t, none(contract.Request{Method: method, Target: "/openapi.json?" + strings.Repeat("x", 8192)})), 414, "uri_too_long")
	}
}

// Fields and parameters that mean nothing here change nothing.
func TestWhatIsIgnored(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	plain := s.Get(t, "/v1/pets/1")
	for _, line := range []string{
		"Range: bytes=0-1", "Range: bytes=99999-", "If-Range: \"x\"\r\nRange: bytes=0-1", "Accept: text/html", "Accept: application/json;q=0", "Accept:",
		"Accept: */*;q=0\r\nAccept: image/*", "Accept: " + strings.Repeat("a/b;q=0.1,", 3000), "Accept-Encoding: gzip", "Accept-Language: tlh",
		"X-HTTP-Method-Override: DELETE", "X-Original-URL: /v1/usage", "X-Rewrite-URL: /v1/usage", "Forwarded: for=192.0.2.1;host=x", "Via: 1.1 x",
		"X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk",
		"Upgrade: websocket\r\nConnection: Upgrade", "Connection: X-RateLimit-Limit, Authorization", "Content-Type: text/plain", "TE: trailers", "Max-Forwards: 0",
		"X-RateLimit-Remaining: 0", "Sec-Fetch-Site: cross-site", "Cookie: a=b", "Prefer: return=minimal", "Date: x", "Trailer: Authorization",
	} {
		resp := s.Get(t, "/v1/pets/1", line)
		if resp.StatusCode != 200 || string(resp.Data) != string(plain.Data) || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("with %.80q: %d %q, want 200 and the pet", line, resp.StatusCode, resp.Data)
		}
	}
	for _, query := range []string{"?limit=x", "?%zz", "?a;b", "?%00", "?status[]=sold&status=x", "?"} {
		want(t, s.Get(t, "/v1/pets/1"+query), 200, "")
		want(t, s.Get(t, "/v1/usage"+query), 200, "")
		want(t, s.Post(t, "/v1/pets"+query, `{"name":"x","categoryId":1}`), 201, "")
	}
	want(t, s.Get(t, "/v1/pets?Limit=x&_=1&statuses=x"), 200, "")
}

// Members that the document does not describe are ignored within its bounds.
func TestBoundsOfBodies(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	body := func(extra string) string { return `{"name":"x","categoryId":1,"extra":` + extra + `}` }
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"15 levels in the object":    {body(nested(15)), 201},
		"16 levels in the object":    {body(nested(16)), 400},
		"2500 values":                {body("[" + strings.Repeat("0,", 2500-5) + "0]"), 201},
		"2501 values":                {body("[" + strings.Repeat("0,", 2500-4) + "0]"), 400},
		"a number of 100 characters": {body(strings.Repeat("1", 100)), 201},
		"a number of 101 characters": {body(strings.Repeat("1", 101)), 400},
		"an exponent of 308":         {body("1e308"), 201},
		"an exponent of 309":         {body("1e309"), 400},
		"a member twice in extra":    {body(`{"a":1,"a":2}`), 400},
		"65536 bytes":                {body(`"` + strings.Repeat("x", 65536-len(body(`""`))) + `"`), 201},
		"65537 bytes":                {body(`"` + strings.Repeat("x", 65537-len(body(`""`))) + `"`), 413},
	} {
		if resp := s.Post(t, "/v1/pets", test.body); resp.StatusCode != test.status {
			t.Errorf("%s: %d %.200s, want %d", name, resp.StatusCode, resp.Data, test.status)
		}
	}
}

// A request that was admitted is served, even if a ban begins while its body is on
// its way. The next one meets the ban.
func TestBanDuringAPost(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.with(s.key(t, "pushy", "enterprise", "9/minute"))
	const body = `{"name":"Duke","categoryId":3}`
	head := fmt.Sprintf("POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", c.Key, len(body))
	conn := s.Dial(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	if resp, err := s.Read(from, head); err != nil || resp.StatusCode != http.StatusContinue {
		t.Fatalf("the server does not ask for the body: %v %v", resp, err)
	}
	if err := s.limits.Ban(t.Context(), "owner:pushy", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	resp, err := s.Read(from, head)
	if err != nil {
		t.Fatal(err)
	}
	s.Check(t, resp)
	want(t, resp, 201, "")
	want(t, c.Get(t, "/v1/pets"), 429, "api_key_banned")
	usage := decode[wireUsage](t, c.Get(t, "/v1/usage"))
	if usage.Quotas[0].Remaining != 8 {
		t.Errorf("%d of 9 requests are left after one and a ban, want 8", usage.Quotas[0].Remaining)
	}
}

// The fields of a deprecated operation are on every response for its path, that to
// a preflight included.
func TestPreflightOfADeprecatedOperation(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.Origins = []string{origin} })
	for _, target := range []string{"/v1/pets/1", "/v1/pet%73/1"} {
		if h := preflight(t, s, target, origin).Header; h.Get("Deprecation") == "" || h.Get("Sunset") == "" || h.Get("Link") == "" {
			t.Errorf("the preflight for %s is answered with %v, want Deprecation, Sunset and Link", target, h)
		}
	}
	if h := preflight(t, s, "/v1/pets", origin).Header; h.Get("Deprecation") != "" {
		t.Errorf("the preflight for /v1/pets is answered with %v, want no Deprecation", h)
	}
}

// The instant of the sunset belongs to the time after it.
func TestAroundTheSunset(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	sunset := time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		at     time.Duration
		status int
	}{{-time.Nanosecond, 200}, {0, 410}, {time.Nanosecond, 410}, {365 * 24 * time.Hour, 410}, {-time.Second, 200}} {
		s.clock.set(sunset.Add(test.at))
		for _, method := range []string{"GET", "HEAD"} {
			resp := s.Do(t, contract.Request{Method: method, Target: "/v1/pets/1", Header: []string{"If-None-Match: \"x\""}})
			if got := resp.Header.Get("Sunset") != ""; resp.StatusCode != test.status || got != (test.status == 200) {
				t.Errorf("%s %v from the sunset: %d, Sunset there: %t", method, test.at, resp.StatusCode, got)
			}
		}
		located := s.Post(t, "/v1/pets", `{"name":"x","categoryId":1}`).Header.Get("Location") != ""
		if located != (test.status == 200) {
			t.Errorf("%v from the sunset: Location of a new pet there: %t", test.at, located)
		}
	}
}

func optionsOf(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
