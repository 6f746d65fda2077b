package bearer_test

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/middleware/bearer"
)

// discard is a ResponseWriter that allocates nothing once its header has been
// used.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkProtect(b *testing.B) {
	h := newAuth(bearer.Options{}).Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer.FromContext[user](r.Context())
	}))
	for _, bb := range []struct {
		name  string
		lines []string
	}{
		{"valid", []string{"Bearer " + goodToken}},
		{"missing", nil},
		{"malformed", []string{"Bearer a b"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w, r := &discard{header: make(http.Header)}, request(bb.lines...)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// The floor: replacing a request's context is one allocation, and the context
// another.
func TestProtectAllocations(t *testing.T) {
	h := newAuth(bearer.Options{}).Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer.FromContext[user](r.Context())
		bearer.OutcomeFrom(r.Context())
	}))
	w, r := &discard{header: make(http.Header)}, request("Bearer "+goodToken)
	if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got > 2 {
		t.Errorf("a valid request costs %v allocations, want 2 at most", got)
	}
}
