package apierror_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
)

// routes has one pattern of each kind that ServeMux treats on its own. The
// handlers tell their pattern and the path values.
func routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, pattern := range []string{
		"GET /v1/pets", "POST /v1/pets", "GET /v1/pets/{petId}",
		"GET /tree/", "GET /both/", "POST /both", "/any", "GET /deep/{a}/{rest...}", "GET /root/{$}", "GET /a%2Fb/",
		"example.com/hosted/", "GET example.com/v1/pets",
		"CONNECT /tunnel", "CONNECT /tunnels/{host}/",
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, strings.Join([]string{pattern, r.PathValue("petId"), r.PathValue("a"), r.PathValue("rest")}, "|"))
		})
	}
	return mux
}

func TestMux(t *testing.T) {
	const rest = " HTTP/1.1\nHost: api.test\nConnection: close\n\n"
	on := func(host string) string { return strings.Replace(rest, "api.test", host, 1) }

	for _, tt := range []struct {
		name    string
		request string
		want    string // status and code, or what the handler tells
		allow   string
	}{
		{"literal", "GET /v1/pets" + rest, "GET /v1/pets|||", ""},
		{"HEAD has the pattern of GET", "HEAD /v1/pets" + rest, "200", ""},
		{"path value", "GET /v1/pets/42" + rest, "GET /v1/pets/{petId}|42||", ""},
		{"escaped slash in a path value", "GET /v1/pets/..%2Fx" + rest, "GET /v1/pets/{petId}|../x||", ""},
		{"absolute form for a host", "GET http://example.com/v1/pets" + rest, "GET example.com/v1/pets|||", ""},
		{"below a tree", "GET /tree/a/b" + rest, "GET /tree/|||", ""},
		{"rest of a path", "GET /deep/x/y/z" + rest, "GET /deep/{a}/{rest...}||x|y/z", ""},
		{"any method", "BREW /any" + rest, "/any|||", ""},
		{"host", "GET /hosted/x" + on("example.com:8080"), "example.com/hosted/|||", ""},
		{"CONNECT", "CONNECT /tunnel" + rest, "CONNECT /tunnel|||", ""},

		{"unknown path", "GET /v1/dogs" + rest, "404 not_found", ""},
		{"trailing slash", "GET /v1/pets/" + rest, "404 not_found", ""},
		{"doubled slash", "GET //v1/pets" + rest, "404 not_found", ""},
		{"dot", "GET /v1/./pets" + rest, "404 not_found", ""},
		{"dots", "GET /v1/x/../pets" + rest, "404 not_found", ""},
		{"unclean path, method not allowed", "DELETE //v1/pets" + rest, "404 not_found", ""},
		{"tree without its slash", "GET /tree" + rest, "404 not_found", ""},
		{"rest of a path without its slash", "GET /deep/x" + rest, "404 not_found", ""},
		{"hosted pattern on another host", "GET /hosted/" + rest, "404 not_found", ""},
		{"asterisk", "OPTIONS *" + rest, "404 not_found", ""},
		{"CONNECT to an authority", "CONNECT api.test:443" + rest, "404 not_found", ""},
		{"CONNECT to a tree without its slash", "CONNECT /tunnels/x" + rest, "404 not_found", ""},
		{"CONNECT to a dot", "CONNECT /tunnels/." + rest, "404 not_found", ""},
		{"CONNECT to an escaped dot", "CONNECT /tunnels/%2E" + rest, "404 not_found", ""},
		{"absolute form without a path", "GET http://api.test" + rest, "404 not_found", ""},

		{"DELETE", "DELETE /v1/pets" + rest, "405 method_not_allowed", "GET, HEAD, POST"},
		{"methods are case-sensitive", "get /v1/pets" + rest, "405 method_not_allowed", "GET, HEAD, POST"},
		{"HEAD", "HEAD /both" + rest, "404", ""}, // ServeMux redirects to /both/
		{"not the methods of the path with a slash", "DELETE /both" + rest, "405 method_not_allowed", "POST"},
		{"host's own pattern beside that of all hosts", "DELETE /v1/pets" + on("example.com"), "405 method_not_allowed", "GET, HEAD, POST"},
		{"CONNECT on a path", "CONNECT /v1/pets" + rest, "405 method_not_allowed", "GET, HEAD, POST"},
		{"GET on a CONNECT path", "GET /tunnel" + rest, "405 method_not_allowed", "CONNECT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rs apierror.Responder
			mux := rs.Mux(routes())
			srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-RateLimit-Remaining", "59")
				mux.ServeHTTP(w, r)
			}))
			res := exchange(t, srv, tt.request)

			if got := describe(t, res); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := res.Header.Get("Allow"); got != tt.allow {
				t.Errorf("Allow: %q, want %q", got, tt.allow)
			}
			if got := res.Header.Get("X-RateLimit-Remaining"); got != "59" {
				t.Errorf("X-RateLimit-Remaining, set by an outer handler, is %q, want 59", got)
			}
			if got := res.Header.Get("Location"); got != "" {
				t.Errorf("Location: %q, but paths are exact", got)
			}
			if res.StatusCode >= 300 {
				for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "Vary": "Accept"} {
					if got := res.Header.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
			}
		})
	}
}

// describe returns a successful body as it is, and "status code" of an envelope.
func describe(t *testing.T, res response) string {
	t.Helper()
	switch {
	case res.Request.Method == http.MethodHead:
		if res.body != "" {
			t.Errorf("the answer to HEAD has the body %q", res.body)
		}
		return res.Status[:3]
	case res.StatusCode < 300:
		return res.body
	}
	var e struct{ Code string }
	if err := json.Unmarshal([]byte(res.body), &e); err != nil {
		t.Errorf("the body is no envelope: %v: %q", err, res.body)
	}
	return res.Status[:3] + " " + e.Code
}

// catchAll has a pattern for everything, which leaves ServeMux no 404 and no 405 of its own,
// but all of its redirects.
func catchAll() *http.ServeMux {
	mux := http.NewServeMux()
	for _, pattern := range []string{"/", "GET /tree/", "CONNECT /{host}/{port}/"} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, pattern) })
	}
	return mux
}

// ServeMux refuses an asterisk by the target as it was sent, whatever an outer
// handler has made of the path since.
func TestMuxWithARewrittenAsterisk(t *testing.T) {
	r := httptest.NewRequest(http.MethodOptions, "*", nil)
	r.URL.Path = "/any"
	rec := httptest.NewRecorder()
	new(apierror.Responder).Mux(routes()).ServeHTTP(rec, r)
	if rec.Code != http.StatusNotFound {
		t.Errorf("status %d, want 404", rec.Code)
	}
	golden(t, "not_found.json", rec.Body.String())
}

// FuzzMux holds Mux against ServeMux itself: what a registered handler serves
// stays as it is, and everything else becomes an envelope.
func FuzzMux(f *testing.F) {
	for _, target := range []string{
		"/v1/pets", "/v1/pets/42", "//v1/pets", "/v1/./pets", "/tree", "/both", "/deep/x", "/a%2Fb", "/a%2fb/", "*",
		"/", "//", "/a/b", "/a//b", "/tree/x", "/./.", "http://example.com/hosted", "/v1/pets/%2E%2E",
		"/deep//", "/tree/..", "/tunnels/.", "/tunnels/%2e", "/tunnels/x//", "/%", "/v1/pets/\x00",
	} {
		for _, method := range []string{"GET", "DELETE", "CONNECT", "POST"} {
			f.Add(method, target, "example.com")
		}
	}
	muxes := []*http.ServeMux{routes(), catchAll()}
	f.Fuzz(func(t *testing.T, method, target, host string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Skip("net/http refuses the target")
		}
		for _, mux := range muxes {
			compareWithServeMux(t, mux, func() *http.Request {
				c := *u
				return &http.Request{Method: method, URL: &c, Host: host, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}
			})
		}
	})
}

func compareWithServeMux(t *testing.T, mux *http.ServeMux, request func() *http.Request) {
	serve := func(h http.Handler) (*httptest.ResponseRecorder, *http.Request) {
		r, rec := request(), httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec, r
	}
	want, served := serve(mux)
	got, r := serve(new(apierror.Responder).Mux(mux))

	exact := r.Method != http.MethodConnect || strings.TrimSuffix(r.URL.Path, "/") == strings.TrimSuffix(path.Clean(r.URL.Path), "/")
	if want.Code == http.StatusOK && exact {
		if got.Code != http.StatusOK || got.Body.String() != want.Body.String() || r.Pattern != served.Pattern {
			t.Fatalf("%s %s is served as %q by ServeMux, but answered %d %q", r.Method, r.RequestURI, want.Body, got.Code, got.Body)
		}
		return
	}
	switch got.Code {
	case http.StatusNotFound:
	case http.StatusMethodNotAllowed:
		all := strings.Split(want.Header().Get("Allow"), ", ")
		for m := range strings.SplitSeq(got.Header().Get("Allow"), ", ") {
			if want.Code != http.StatusMethodNotAllowed || !slices.Contains(all, m) {
				t.Fatalf("%s %s: Allow has %q, which ServeMux (%d) does not have: %q", r.Method, r.RequestURI, m, want.Code, all)
			}
		}
	default:
		t.Fatalf("%s %s: ServeMux answers %d by itself, Mux answers %d", r.Method, r.RequestURI, want.Code, got.Code)
	}
	if ct := got.Header().Get("Content-Type"); ct != "application/json" || got.Header().Get("Location") != "" {
		t.Fatalf("%s %s: the answer is no envelope: %v", r.Method, r.RequestURI, got.Header())
	}
}
