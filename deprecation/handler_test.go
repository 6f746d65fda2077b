package deprecation_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
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
	if err != nil {
		t.Fatal(err)
	}
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
	d, err := deprecation.New(deprecation.Options{Since: since, Sunset: sunset, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
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

// The pets API in small: all responses for the path carry the headers, whichever
// handler gives them, and none for another path does. 401 comes before 410, and 410 before 405.
func TestComposition(t *testing.T) {
	var errs apierror.Responder
	refuse := func(status int, code apierror.Code, when func(*http.Request) bool) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if when(r) {
					errs.Respond(w, r, apierror.New(status, code, ""))
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
	service := func(d *deprecation.Declaration) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("GET /v1/pets", ok)
		mux.Handle("GET /v1/pets/{petId}", errs.Handle(func(_ http.ResponseWriter, r *http.Request) error {
			if r.PathValue("petId") == "404" {
				return apierror.New(http.StatusNotFound, "pet_not_found", "")
			}
			return nil
		}))
		h := deprecation.OnPath("/v1/pets/{petId}", d.Enforce)(errs.Mux(mux))
		h = refuse(http.StatusUnauthorized, "missing_api_key", func(r *http.Request) bool { return r.Header.Get("Authorization") == "" })(h)
		h = refuse(http.StatusTooManyRequests, apierror.CodeRateLimitExceeded, func(r *http.Request) bool { return r.Header.Get("Authorization") == "over" })(h)
		return deprecation.OnPath("/v1/pets/{petId}", d.Headers)(h)
	}
	for _, tt := range []struct {
		method, path, key string
		status, gone      int // before and after the sunset
		announced         bool
	}{
		{"GET", "/v1/pets/7", "key", 200, 410, true},
		{"HEAD", "/v1/pets/7", "key", 200, 410, true},
		{"GET", "/v1/p%65ts/7", "key", 200, 410, true},
		{"GET", "/v1/pets/a%2Fb", "key", 200, 410, true},
		{"GET", "/v1/pets/404", "key", 404, 410, true},
		{"HEAD", "/v1/pets/404", "key", 404, 410, true},
		{"DELETE", "/v1/pets/7", "key", 405, 410, true},
		{"GET", "/v1/pets/7", "", 401, 401, true},
		{"HEAD", "/v1/pets/7", "", 401, 401, true},
		{"DELETE", "/v1/pets/7", "", 401, 401, true},
		{"GET", "/v1/pets/7", "over", 429, 429, true},
		{"GET", "/v1/pets", "key", 200, 200, false},
		{"GET", "/v1/pets", "", 401, 401, false},
		{"GET", "/v1/pets/", "key", 404, 404, false},
		{"GET", "/v1/pets/7/toys", "key", 404, 404, false},
		{"GET", "/V1/pets/7", "key", 404, 404, false},
		{"POST", "/v1/pets", "over", 429, 429, false},
	} {
		for _, now := range []time.Time{before, sunset} {
			h := service(declare(t, now, deprecation.Options{Sunset: sunset, Successor: successor}))
			status, want := tt.status, announced
			if now.Equal(sunset) {
				status, want = tt.gone, map[string][]string{"Deprecation": {deprecationValue}, "Link": {successorLink}}
			}
			if !tt.announced {
				want = map[string][]string{}
			}
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.Header.Set("Authorization", tt.key)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if diff := cmp.Diff(want, fields(w.Header())); w.Code != status || diff != "" {
				t.Errorf("%s %s, key %q, at %v: status %d, want %d; fields (-want +got):\n%s",
					tt.method, tt.path, tt.key, now.Format(time.DateOnly), w.Code, status, diff)
			}
		}
	}
}
