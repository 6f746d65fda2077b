package deprecation_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/testcheck"
)

// fields are those that this package has to do with, as they were sent.
func fields(h http.Header) map[string][]string {
	got := make(map[string][]string)
	for _, name := range []string{"Deprecation", "Sunset", "Link", "Retry-After"} {
		if values := h.Values(name); len(values) > 0 {
			got[name] = values
		}
	}
	return got
}

func serve(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

var announced = map[string][]string{
	"Deprecation": {deprecationValue},
	"Sunset":      {sunsetValue},
	"Link":        {successorLink},
}

// unset stands for no instant, since declare would set one.
var unset = time.Unix(1, 0)

func TestHandlerFields(t *testing.T) {
	all := deprecation.Options{
		Sunset: sunset, Successor: successor,
		Documentation: "https://docs.example/deprecations/get-pet", SunsetInfo: "/policy",
	}
	for _, tt := range []struct {
		name    string
		now     time.Time
		options deprecation.Options
		want    map[string][]string
	}{
		{"everything", before, all, map[string][]string{
			"Deprecation": {deprecationValue}, "Sunset": {sunsetValue},
			"Link": {successorLink + `, <https://docs.example/deprecations/get-pet>; rel="deprecation", </policy>; rel="sunset"`},
		}},
		{"deprecation only", before, deprecation.Options{}, map[string][]string{"Deprecation": {deprecationValue}}},
		{"no instant of deprecation: every value would be invented", before, deprecation.Options{Since: unset, Sunset: sunset}, map[string][]string{
			"Sunset": {sunsetValue},
		}},
		{"no removal date", sunset.AddDate(100, 0, 0), deprecation.Options{Successor: successor}, map[string][]string{
			"Deprecation": {deprecationValue}, "Link": {successorLink},
		}},
		{"before the deprecation", since.AddDate(-1, 0, 0), deprecation.Options{Sunset: sunset, Successor: successor}, announced},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(declare(t, tt.now, tt.options).Enforce(ok), http.MethodGet, "/v1/pets/7")
			if w.Code != http.StatusOK {
				t.Errorf("status %d, want 200: a deprecation changes no behaviour (RFC 9745 section 5)", w.Code)
			}
			if diff := cmp.Diff(tt.want, fields(w.Header())); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// The zone of the host has no part in the fields.
func TestHandlerInAnotherZone(t *testing.T) {
	local := time.Local
	time.Local = time.FixedZone("JST", 9*60*60)
	defer func() { time.Local = local }()
	d, err := deprecation.New(deprecation.Options{
		Since:  time.Unix(1764892800, 0),
		Sunset: time.Unix(1922659200, 0), Successor: successor, Now: func() time.Time { return sunset.Add(-1).Local() },
	})
	testcheck.NoError(t, err)
	w := serve(d.Enforce(ok), http.MethodGet, "/v1/pets/7")
	if diff := cmp.Diff(announced, fields(w.Header())); w.Code != http.StatusOK || diff != "" {
		t.Errorf("status %d, fields (-want +got):\n%s", w.Code, diff)
	}
}

// An operator needs to know the remaining callers most when they are refused.
func TestOnUse(t *testing.T) {
	noon := time.Date(2030, time.October, 1, 12, 0, 0, 0, time.UTC)
	for _, now := range []time.Time{before, noon, sunset} {
		var used []string
		d := declare(t, now, deprecation.Options{
			Sunset:    sunset,
			Brownouts: []deprecation.Brownout{{noon, noon.Add(time.Hour)}},
			OnUse:     func(r *http.Request) { used = append(used, r.URL.Path) },
		})
		serve(d.Headers(d.Enforce(ok)), http.MethodGet, "/v1/pets/7")
		if diff := cmp.Diff([]string{"/v1/pets/7"}, used); diff != "" {
			t.Errorf("at %v: uses (-want +got):\n%s", now, diff)
		}
		used = nil
		serve(d.Headers(ok), http.MethodGet, "/v1/pets/7")
		if len(used) != 0 {
			t.Errorf("at %v: Headers reported a use that did not reach the operation", now)
		}
	}
}

// The sunset may come between the outer middleware and the operation.
func TestSunsetWhileARequestIsOnItsWay(t *testing.T) {
	now := sunset.Add(-1)
	d := testcheck.Must(deprecation.New(deprecation.Options{Since: since, Sunset: sunset, Now: func() time.Time { return now }}))
	inside := d.Enforce(ok)
	w := serve(d.Headers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now = sunset
		inside.ServeHTTP(w, r)
	})), http.MethodGet, "/v1/pets/7")
	if diff := cmp.Diff(map[string][]string{"Deprecation": {deprecationValue}}, fields(w.Header())); w.Code != http.StatusGone || diff != "" {
		t.Errorf("status %d, fields (-want +got):\n%s", w.Code, diff)
	}
}

func TestNilDeclaration(t *testing.T) {
	var d *deprecation.Declaration
	w := serve(d.Headers(d.Enforce(ok)), http.MethodGet, "/v1/pets/7")
	if got := fields(w.Header()); w.Code != http.StatusOK || len(got) > 0 {
		t.Errorf("status %d, fields %v; an operation that is not deprecated has none", w.Code, got)
	}
}

func TestRemoved(t *testing.T) {
	at := func(now time.Time) http.Handler {
		return declare(t, now, deprecation.Options{Sunset: sunset, Successor: successor, Documentation: "https://docs.example/"}).Enforce(ok)
	}
	for now, status := range map[time.Time]int{
		sunset.Add(-1): 200, sunset: 410, sunset.Add(time.Second): 410, sunset.In(time.FixedZone("JST", 9*60*60)): 410,
	} {
		if w := serve(at(now), http.MethodGet, "/v1/pets/7"); w.Code != status {
			t.Errorf("at %v: status %d, want %d", now, w.Code, status)
		}
	}
	h := at(sunset)
	w := serve(h, http.MethodGet, "/v1/pets/7")
	want := map[string][]string{
		"Deprecation": {deprecationValue},
		"Link":        {successorLink + `, <https://docs.example/>; rel="deprecation"`},
	}
	if diff := cmp.Diff(want, fields(w.Header())); diff != "" {
		t.Errorf("fields; a Sunset in the past says nothing (-want +got):\n%s", diff)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q, want no-store: a 410 is cacheable otherwise", got)
	}
	head := serve(h, http.MethodHead, "/v1/pets/7")
	if diff := cmp.Diff(w.Header(), head.Header()); head.Code != http.StatusGone || head.Body.Len() != 0 || diff != "" {
		t.Errorf("HEAD: status %d, %d octets, header (-GET +HEAD):\n%s", head.Code, head.Body.Len(), diff)
	}
}

func TestBrownouts(t *testing.T) {
	noon := time.Date(2030, time.October, 1, 12, 0, 0, 0, time.UTC)
	h := func(now time.Time) http.Handler {
		return declare(t, now, deprecation.Options{
			Sunset: sunset, Successor: successor,
			Brownouts: []deprecation.Brownout{
				{noon.AddDate(0, 1, 0), noon.AddDate(0, 1, 0).Add(time.Hour)}, // alone
				{noon.Add(10 * time.Minute), noon.Add(20 * time.Minute)},      // touches the next but one
				{noon.Add(time.Minute), noon.Add(5 * time.Minute)},            // inside of the next
				{noon, noon.Add(10 * time.Minute)},
			},
		}).Enforce(ok)
	}
	for _, tt := range []struct {
		name       string
		now        time.Time
		retryAfter string // "" is no brownout
	}{
		{"long before", before, ""},
		{"just before", noon.Add(-1), ""},
		{"start", noon, "1200"},
		{"within a second", noon.Add(time.Millisecond), "1200"},
		{"a second later", noon.Add(time.Second), "1199"},
		{"in one of three that are one", noon.Add(10 * time.Minute), "600"},
		{"last second", noon.Add(20*time.Minute - time.Second), "1"},
		{"last instant", noon.Add(20*time.Minute - 1), "1"},
		{"end", noon.Add(20 * time.Minute), ""},
		{"between", noon.AddDate(0, 0, 15), ""},
		{"second", noon.AddDate(0, 1, 0).Add(time.Minute), "3540"},
		{"after the last", noon.AddDate(0, 2, 0), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(h(tt.now), http.MethodGet, "/v1/pets/7")
			want := map[string][]string{"Deprecation": {deprecationValue}, "Sunset": {sunsetValue}, "Link": {successorLink}}
			status := http.StatusOK
			if tt.retryAfter != "" {
				want["Retry-After"], status = []string{tt.retryAfter}, http.StatusGone
			}
			if diff := cmp.Diff(want, fields(w.Header())); w.Code != status || diff != "" {
				t.Errorf("status %d, want %d; fields (-want +got):\n%s", w.Code, status, diff)
			}
		})
	}
}

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
			testcheck.NoError(t, err)
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
func TestFieldsAreNotSpoiled(t *testing.T) {
	h := declare(t, before, deprecation.Options{Sunset: sunset, Successor: successor}).Enforce(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"Deprecation", "Sunset", "Link"} {
				w.Header().Add(name, r.URL.Path)
			}
		}))
	for _, path := range []string{"/a", "/b"} {
		want := map[string][]string{
			"Deprecation": {deprecationValue, path}, "Sunset": {sunsetValue, path}, "Link": {successorLink, path},
		}
		if diff := cmp.Diff(want, fields(serve(h, http.MethodGet, path).Header())); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
	}
}

// The instants of the pets API. The day of the removal is a Thursday.
var (
	since  = time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC)
	sunset = time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC)
)

const (
	deprecationValue = "@1764892800"
	sunsetValue      = "Thu, 05 Dec 2030 00:00:00 GMT"
	successor        = "/v1/pets?status=available"
	successorLink    = `</v1/pets?status=available>; rel="successor-version"`
)

// declare makes a declaration whose clock stands at now.
func declare(t testing.TB, now time.Time, o deprecation.Options) *deprecation.Declaration {
	t.Helper()
	switch o.Since {
	case unset:
		o.Since = time.Time{}
	case time.Time{}:
		o.Since = since
	}
	o.Now = func() time.Time { return now }
	d, err := deprecation.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return d
}

// before is an instant of ordinary service.
var before = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
