package api_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

func TestMethods(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	allow := map[string]string{
		"/v1/pets":   "GET, HEAD, OPTIONS, POST",
		"/v1/pets/1": "GET, HEAD, OPTIONS",
		"/v1/usage":  "GET, HEAD, OPTIONS",
	}
	for target, methods := range allow {
		for _, method := range []string{"PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "POST", "PROPFIND", "get", "Get", "X"} {
			if method == "POST" && target == "/v1/pets" {
				continue
			}
			resp := s.Do(t, contract.Request{Method: method, Target: target, Header: []string{"X-Secret: s3cret"}})
			want(t, resp, 405, "method_not_allowed")
			if got := resp.Header.Get("Allow"); got != methods {
				t.Errorf("%s %s: Allow is %q, want %q", method, target, got, methods)
			}
			if strings.Contains(string(resp.Data), "s3cret") {
				t.Errorf("%s %s reflects the request: %s", method, target, resp.Data)
			}
		}
		resp := s.Do(t, contract.Request{Method: "OPTIONS", Target: target})
		want(t, resp, 204, "")
		if got := resp.Header.Get("Allow"); got != methods {
			t.Errorf("OPTIONS %s: Allow is %q, want %q", target, got, methods)
		}
	}
	want(t, s.Do(t, contract.Request{Method: "OPTIONS", Target: "*"}), 204, "")
	want(t, s.Do(t, none(contract.Request{Method: "OPTIONS", Target: "*"})), 204, "")
	want(t, s.Do(t, contract.Request{Method: "OPTIONS", Target: "/v1/nothing"}), 404, "not_found")
}

func TestPathsAreExact(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.pets(t, 1)
	for _, target := range []string{
		"/v1", "/v1/", "/v1/pets/", "/V1/pets", "/v1/Pets", "/v1//pets", "/v1/./pets", "/v1/x/../pets", "/v1/pets/../pets",
		"/v1/pets/1/", "/v1/pets/1/x", "/v1/pets//1", "/v1%2Fpets", "/v1/pets%00", "/v1/pets%2F1", "/v1/pets;x=y", "/v1/usage/", "/v1/.",
	} {
		want(t, s.Get(t, target), 404, "not_found")
		if target != "/V1/pets" {
			want(t, s.Do(t, none(contract.Request{Target: target})), 401, "missing_api_key")
		}
	}
	for _, target := range []string{"/", "//", "//v1/pets", "/./v1/pets", "/x/../v1/pets", "/favicon.ico", "/v2/pets", "/openapi.json/", "/%76"} {
		want(t, s.Get(t, target), 404, "not_found")
		want(t, s.Do(t, none(contract.Request{Target: target})), 404, "not_found") // there is no API outside of /v1
	}
	want(t, s.Get(t, "/%761/p%65ts"), 200, "") // the same path (RFC 3986 section 2.3)
	want(t, s.Do(t, none(contract.Request{Target: "/%761/p%65ts"})), 401, "missing_api_key")
	want(t, s.Do(t, none(contract.Request{Target: "/v1%2Fpets"})), 401, "missing_api_key")
	want(t, s.Get(t, "http://elsewhere.example/v1/pets"), 200, "")
}

func TestTargetLength(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, size := range []int{8193, 20000, 60000} {
		want(t, s.Get(t, "/v1/pets?"+strings.Repeat("x", size-len("/v1/pets?"))), 414, "uri_too_long")
		want(t, s.Get(t, "/v1/pets/"+strings.Repeat("1", size-len("/v1/pets/"))), 414, "uri_too_long")
	}
	want(t, s.Get(t, "/v1/pets?"+strings.Repeat("x", 8192-len("/v1/pets?"))), 200, "")
}

func TestProtocolVersions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	auth := "Authorization: Bearer " + s.Key + "\r\n"
	resp := s.Raw(t, "GET /v1/pets HTTP/1.0\r\n"+auth+"\r\n")
	want(t, resp, 200, "")
	if len(resp.TransferEncoding) > 0 {
		t.Error("a client of HTTP/1.0 is sent a Transfer-Encoding")
	}
	want(t, s.Raw(t, "GET /v1/pets HTTP/1.1\r\nhost: x\r\nAUTHORIZATION: Bearer "+s.Key+"\r\n\r\n"), 200, "")
}

// What net/http cannot serve it refuses by itself, without reaching the API.
func TestBrokenHTTPIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	auth := "Authorization: Bearer " + s.Key + "\r\n"
	for name, octets := range map[string]string{
		"no Host":                  "GET /v1/pets HTTP/1.1\r\n" + auth + "\r\n",
		"two Hosts":                "GET /v1/pets HTTP/1.1\r\nHost: a\r\nHost: b\r\n" + auth + "\r\n",
		"a malformed Host":         "GET /v1/pets HTTP/1.1\r\nHost: a b\r\n" + auth + "\r\n",
		"a bad escape in the path": "GET /v1/%zz HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"white space before colon": "GET /v1/pets HTTP/1.1\r\nHost : x\r\n" + auth + "\r\n",
		"NUL in a field":           "GET /v1/pets HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n" + auth + "\r\n",
		"differing lengths":        "POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + auth + "\r\nxx",
		"a negative length":        "POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n" + auth + "\r\n",
		"an unknown coding":        "POST /v1/pets HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n" + auth + "\r\n",
		"a large header section":   "GET /v1/pets HTTP/1.1\r\nHost: x\r\n" + auth + "X: " + strings.Repeat("x", 100_000) + "\r\n\r\n",
		"an unknown version":       "GET /v1/pets HTTP/3.7\r\nHost: x\r\n" + auth + "\r\n",
		"an unknown expectation":   "GET /v1/pets HTTP/1.1\r\nHost: x\r\nExpect: more\r\n" + auth + "\r\n",
		"garbage":                  "\x16\x03\x01\x02\x00\r\n\r\n",
	} {
		conn := s.Dial(t)
		go io.WriteString(conn, octets)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v, want a refusal", name, err)
		} else if resp.StatusCode < 400 || resp.Header.Get("X-RateLimit-Limit") != "" || !resp.Close {
			t.Errorf("%s: status %d, close %t, want a refusal by net/http that closes", name, resp.StatusCode, resp.Close)
		}
		conn.Close()
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if got := s.Get(t, "/v1/pets", "X-Request-Id: abc-1.2_Z").Header.Get("X-Request-Id"); got != "abc-1.2_Z" {
		t.Errorf("X-Request-Id is %q, want the one that was sent", got)
	}
	for _, sent := range []string{"", "a b", "é", strings.Repeat("a", 65), "a\tb", `"`} {
		if got := s.Get(t, "/v1/pets", "X-Request-Id: "+sent).Header.Get("X-Request-Id"); got == sent || len(got) != 32 {
			t.Errorf("X-Request-Id is %q after %q was sent, want a new one", got, sent)
		}
	}
}
