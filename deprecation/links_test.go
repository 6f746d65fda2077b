package deprecation_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
)

func TestLinksOfOthersStay(t *testing.T) {
	const other = `</v1/pets?cursor=x>; rel="next"`
	d := declare(t, before, deprecation.Options{Sunset: sunset, Successor: successor})
	adds := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Add("Link", other) })
	outer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			adds(w, r)
			next.ServeHTTP(w, r)
		})
	}
	for _, tt := range []struct {
		name string
		h    http.Handler
		want []string
	}{
		{"set before", outer(d.Enforce(ok)), []string{other, successorLink}},
		{"set after", d.Enforce(adds), []string{successorLink, other}},
		{"set between", d.Headers(outer(d.Enforce(ok))), []string{successorLink, other}},
		{"on all sides", outer(d.Headers(outer(d.Enforce(adds)))), []string{other, successorLink, other, other}},
		{"alone, after the others", d.Enforce(ok), []string{successorLink}},
	} {
		if got := serve(tt.h, http.MethodGet, "/v1/pets/7").Header()["Link"]; !slices.Equal(got, tt.want) {
			t.Errorf("%s: Link is %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A handler that sets a Link of its own, however its response begins, does not
// remove the declaration's.
func TestLinkSetByTheHandler(t *testing.T) {
	const own = `</v1/pets?cursor=x>; rel="next"`
	for name, answer := range map[string]func(http.ResponseWriter){
		"WriteHeader": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"Write":       func(w http.ResponseWriter) { _, _ = w.Write([]byte("Rex")) },
		"WriteString": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "Rex") },
		"ReadFrom": func(w http.ResponseWriter) {
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader("Rex"), 9))
		},
		"Flush":              func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"nothing":            func(http.ResponseWriter) {},
		"103 and then 200":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints); w.WriteHeader(http.StatusOK) },
		"a panic, recovered": func(http.ResponseWriter) { panic("lost") },
	} {
		d := declare(t, before, deprecation.Options{Sunset: sunset, Successor: successor})
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", own)
			answer(w)
		})
		rs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
		for where, h := range map[string]http.Handler{
			"Headers": rs.Recover(d.Headers(next)), "Enforce": rs.Recover(d.Enforce(next)), "both": rs.Recover(d.Headers(d.Enforce(next))),
		} {
			server := httptest.NewServer(h)
			resp, err := server.Client().Get(server.URL)
			server.Close()
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.Header["Link"]; !slices.Equal(got, []string{own, successorLink}) {
				t.Errorf("%s, response begun by %s: Link is %q, want both", where, name, got)
			}
		}
	}
}

func TestEachFieldOnce(t *testing.T) {
	d := declare(t, before, deprecation.Options{Sunset: sunset, Successor: successor})
	h := d.Headers(d.Headers(d.Enforce(d.Enforce(ok))))
	if diff := cmp.Diff(announced, fields(serve(h, http.MethodGet, "/v1/pets/7").Header())); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// Responses share the values of the fields, and must not see what others add.
func TestConcurrentResponses(t *testing.T) {
	h := declare(t, before, deprecation.Options{Sunset: sunset, Successor: successor}).Enforce(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"Deprecation", "Sunset", "Link"} {
				w.Header().Add(name, r.URL.Path)
			}
		}))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			path := fmt.Sprintf("/v1/pets/%d", i)
			want := map[string][]string{
				"Deprecation": {deprecationValue, path}, "Sunset": {sunsetValue, path}, "Link": {successorLink, path},
			}
			for range 100 {
				if diff := cmp.Diff(want, fields(serve(h, http.MethodGet, path).Header())); diff != "" {
					t.Errorf("fields (-want +got):\n%s", diff)
					return
				}
			}
		})
	}
	wg.Wait()
}
