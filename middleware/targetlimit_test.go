package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware"
)

func TestTargetLimit(t *testing.T) {
	h := middleware.TargetLimit(100, nil)(ok)
	for _, tt := range []struct {
		name, target string
		refused      bool
	}{
		{"path at the limit", "/" + strings.Repeat("a", 99), false},
		{"path over the limit", "/" + strings.Repeat("a", 100), true},
		{"query counts", "/?" + strings.Repeat("a", 99), true},
		{"bytes as sent count", "/" + strings.Repeat("%61", 34), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := serve(h, httptest.NewRequest("GET", tt.target, nil))
			if !tt.refused && resp.StatusCode != 200 {
				t.Errorf("target of %d bytes is answered %d, want 200", len(tt.target), resp.StatusCode)
			}
			if tt.refused && (resp.StatusCode != 414 || code(t, resp) != "uri_too_long") {
				t.Errorf("target of %d bytes is answered %d, want 414 uri_too_long", len(tt.target), resp.StatusCode)
			}
		})
	}
}

// net/http answers 431 where its own bound on the header section is the lower
// one; with the bound well above the limit, 414 is what a client sees.
func TestTargetLimitBehindServer(t *testing.T) {
	srv := httptest.NewUnstartedServer(middleware.TargetLimit(8<<10, nil)(ok))
	srv.Config.MaxHeaderBytes = 64 << 10
	srv.Start()
	defer srv.Close()
	for length, want := range map[int]int{8 << 10: 200, 8<<10 + 1: 414, 60 << 10: 414} {
		resp, err := http.Get(srv.URL + "/" + strings.Repeat("a", length-1))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("target of %d bytes is answered %d, want %d", length, resp.StatusCode, want)
		}
	}
}
