package deprecation_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/deprecation"
)

func TestSunsetIsTheFirstInstantOfRemoval(t *testing.T) {
	for _, tt := range []struct {
		name   string
		now    time.Time
		status int
	}{
		{"a second before", sunset.Add(-time.Second), http.StatusOK},
		{"just before", sunset.Add(-1), http.StatusOK},
		{"at the sunset", sunset, http.StatusGone},
		{"a second after", sunset.Add(time.Second), http.StatusGone},
		{"in another zone", sunset.In(time.FixedZone("JST", 9*60*60)), http.StatusGone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := declare(t, tt.now, deprecation.Options{Sunset: sunset, Successor: successor}).Enforce(ok)
			if w := serve(h, http.MethodGet, "/v1/pets/7"); w.Code != tt.status {
				t.Errorf("status %d, want %d", w.Code, tt.status)
			}
		})
	}
}

func TestRemoved(t *testing.T) {
	h := declare(t, sunset, deprecation.Options{Sunset: sunset, Successor: successor, Documentation: "https://docs.example/"}).Enforce(ok)
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
	const body = `{"code":"operation_removed","message":"This operation was removed on 5 December 2030. ` +
		`Use /v1/pets?status=available instead.","status":410}` + "\n"
	if got := w.Body.String(); got != body {
		t.Errorf("body %s\nwant %s", got, body)
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
	const want = `{"code":"operation_removed","message":"This operation is deprecated and temporarily switched off. ` +
		`It will be removed on 5 December 2030. Use /v1/pets?status=available instead.","status":410}` + "\n"
	if got := serve(h(noon), http.MethodGet, "/v1/pets/7").Body.String(); got != want {
		t.Errorf("body %s\nwant %s", got, want)
	}
}
