package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
)

// The transport still reads the body of a request while the response of the backend is
// already being sent. Nothing may use the header of the response at that time.
func TestBackendAnswersBeforeTheBodyEnds(t *testing.T) {
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			s := newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				w.WriteHeader(http.StatusOK) // Go's client stops sending a body over HTTP/2 after another status
				_ = http.NewResponseController(w).Flush()
				_, _ = io.Copy(io.Discard, r.Body)
			}), limit.Options{ChargeIf: limit.NotServerError, Context: true})
			srv, client := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				s.ServeHTTP(w, r)
			}), http2)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					// Longer than BodyLimit allows, which notices at the end.
					body := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), strings.NewReader("x"))
					resp, err := client.Post(srv.URL, "text/plain", body)
					if err != nil {
						return // the connection is closed while the client sends
					}
					defer resp.Body.Close()
					_, _ = io.Copy(io.Discard, resp.Body)
					if resp.StatusCode != 200 && resp.StatusCode != 413 {
						t.Errorf("status %d, want that of the backend, 200, or 413", resp.StatusCode)
					}
					if lines := resp.Header["X-Request-Id"]; len(lines) != 1 {
						t.Errorf("X-Request-Id: %q, want one", lines)
					}
				})
			}
			all.Wait()
		})
	}
}
