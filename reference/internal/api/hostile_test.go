package api_test

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// maxMemory is what a request may take at most, whatever it holds.
const maxMemory = 8 << 20

// A hostile request takes little memory, and is answered like any other. Package jsonbody has
// the hostile bodies.
func TestHostileRequestsAreCheap(t *testing.T) {
	// Not parallel: it measures the memory of the process.
	s := start(t, nil)
	type request struct {
		method, target, field, value, body string
	}
	requests := make(map[string]request)
	fill := func(unit string, size int) string { return strings.Repeat(unit, size/len(unit)) }

	for name, unit := range map[string]string{
		"separators": "&", "semicolons": ";", "pairs": "a=b&", "limits": "limit=1&", "empty limits": "limit&", "escapes": "%41",
		"bad escapes": "%zz", "octets that are not UTF-8": "%ff", "NULs": "%00", "plus signs": "+", "brackets": "limit[]=1&", "equals": "=",
	} {
		requests["a query of "+name] = request{target: "/v1/pets?" + fill(unit, 8000)}
		requests["a cursor of "+name] = request{target: "/v1/pets?cursor=" + fill(strings.ReplaceAll(unit, "&", "A"), 8000)}
	}
	for name, unit := range map[string]string{
		"slashes": "/", "escaped slashes": "%2F", "dots": "../", "single dots": "./", "escaped dots": "%2e%2e/", "digits": "9", "NULs": "%00", "segments": "/x",
	} {
		requests["a path of "+name] = request{target: "/v1/pets/" + fill(unit, 8000)}
		requests["a long path of "+name] = request{target: "/v1/pets/" + fill(unit, 60000)}
	}
	for _, field := range []string{
		"Accept", "Authorization", "Content-Type", "Content-Encoding", "If-Match", "If-None-Match", "X-Request-Id", "X-Forwarded-For",
		"Origin", "Forwarded", "Cookie", "Range", "Expect-CT",
	} {
		for name, unit := range map[string]string{
			"commas": ",", "quotes": `"`, "tags": `"x",`, "weak tags": `W/"x",`, "slashes": "a/b,", "parameters": `a/b;c="d\"";`,
			"weights": "a/b;q=0.5,", "stars": "*", "letters": "a", "Bearer": "Bearer ", "octets": "\xff", "addresses": "1.1.1.1,",
			"semicolons": ";", "backslashes": `"\`,
		} {
			requests[field+" of "+name] = request{target: "/v1/pets/1", field: field, value: fill(unit, 60000)}
			requests["POST with "+field+" of "+name] = request{method: "POST", target: "/v1/pets", field: field, value: fill(unit, 60000), body: "{}"}
		}
	}
	for name, r := range requests {
		req := httptest.NewRequest(cmp.Or(r.method, "GET"), "/", strings.NewReader(r.body))
		if err := setTarget(req, r.target); err != nil {
			continue // net/http refuses it
		}
		if r.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		req.Header.Set("Authorization", "Bearer "+s.Key)
		if r.field != "" {
			req.Header[http.CanonicalHeaderKey(r.field)] = []string{r.value}
		}
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.handler.ServeHTTP(w, req)
		runtime.ReadMemStats(&after)
		if w.Code >= 500 || w.Header().Get("X-RateLimit-Limit") == "" {
			t.Errorf("%s: answered with %d %v %s", name, w.Code, w.Header(), w.Body)
		}
		if memory := after.TotalAlloc - before.TotalAlloc; memory > maxMemory {
			t.Errorf("%s takes %d octets of memory, want %d at most", name, memory, maxMemory)
		}
	}
	if got := string(s.Get(t, "/v1/pets").Data); got != "[]\n" {
		t.Errorf("something was stored: %.200s", got)
	}
}

func setTarget(r *http.Request, target string) error {
	u, err := r.URL.Parse(target)
	if err != nil {
		return err
	}
	r.URL, r.RequestURI = u, target
	return nil
}

// FuzzRequest sends any octets. The first request in them is answered as promised,
// or refused by net/http, which then closes the connection.
func FuzzRequest(f *testing.F) {
	s := start(f, nil)
	s.pets(f, 3)
	const key = "KEY" // stands for a valid key, which no fuzzer finds
	for _, seed := range []string{
		"GET /v1/pets?limit=2&status=sold HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n\r\n",
		"HEAD /v1/pets/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nIf-None-Match: \"x\", W/\"y\"\r\n\r\n",
		"POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n{\"name\":\"x\",\"categoryId\":1}",
		"POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://y/v1/usage HTTP/1.0\r\nAuthorization: Bearer KEY\r\nAccept: application/problem+json\r\n\r\n",
		"DELETE /v1/pets/%2e%2e HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
		"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /v1/pets?cursor=AQAAAAAAAAAAFBaS1zU HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n\r\n",
		"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n",
		"HEAD /v1/pets/. HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /v1/pets HTTP/1.1\r\nHost: a\r\nHost: b\r\nAuthorization: Bearer KEY\r\n\r\n",
		"POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\nAuthorization: Bearer KEY\r\n\r\nxx",
		"GET /v1/pets HTTP/1.1\r\nHost: x\r\nExpect: more\r\nAuthorization: Bearer KEY\r\n\r\n",
		"GET /v1/%zz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		octets = bytes.ReplaceAll(octets, []byte(key), []byte(s.Key))
		conn := s.Dial(t)
		defer conn.Close()
		go func() {
			_, _ = conn.Write(octets)
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		from := bufio.NewReader(conn)
		begin := time.Now()
		for {
			resp, err := s.Read(from, string(octets))
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("no answer after %v", time.Since(begin))
				}
				return // half a request, and the server has closed
			}
			if resp.StatusCode == http.StatusContinue {
				continue
			}
			switch {
			case resp.Header.Get("Cache-Control") == "no-cache" && resp.StatusCode < 400:
				// the document, which is a page and no response of the API
			case resp.StatusCode == 499:
				// net/http takes a client that has closed its side for one that has disconnected
			case resp.Header.Get("X-RateLimit-Limit") != "":
				s.Check(t, resp)
			case resp.StatusCode >= 400 && resp.Close && !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/"):
				// by net/http
			default:
				t.Errorf("status %d without the fields of the API: %v", resp.StatusCode, resp.Header)
			}
			return
		}
	})
}
