package middleware_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware"
)

func BenchmarkMiddleware(b *testing.B) {
	for _, bb := range []struct {
		name       string
		middleware middleware.Middleware
	}{
		{"RequestID", middleware.RequestID},
		{"Recover", middleware.Recover(nil)},
		{"SecurityHeaders", middleware.SecurityHeaders},
		{"TargetLimit", middleware.TargetLimit(8<<10, nil)},
		{"BodyLimit", middleware.BodyLimit(64<<10, nil)},
		{"AccessLog", middleware.AccessLog(slog.New(slog.NewJSONHandler(io.Discard, nil)))},
	} {
		b.Run(bb.name, func(b *testing.B) {
			h, w := bb.middleware(ok), &discard{header: make(http.Header)}
			r := httptest.NewRequest("GET", "/v1/pets?limit=20", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

func BenchmarkBodyLimitWithBody(b *testing.B) {
	body := strings.NewReader(`{"name":"Rex","categoryId":1}`)
	buf := make([]byte, 512)
	h := middleware.BodyLimit(64<<10, nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := r.Body.Read(buf); err != nil {
				return
			}
		}
	}))
	w, r := &discard{header: make(http.Header)}, httptest.NewRequest("POST", "/v1/pets", body)
	b.ReportAllocs()
	for b.Loop() {
		body.Seek(0, 0)
		h.ServeHTTP(w, r)
	}
}

func TestSharedHeadersDoNotAllocate(t *testing.T) {
	h := middleware.Chain(ok, middleware.SecurityHeaders, middleware.TargetLimit(8<<10, nil), middleware.BodyLimit(64<<10, nil))
	w, r := &discard{header: make(http.Header)}, httptest.NewRequest("GET", "/", nil)
	if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != 0 {
		t.Errorf("a request without a body costs %v allocations, want none", got)
	}
}
