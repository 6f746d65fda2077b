package httpserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// However often the options are replaced, no request fails.
func TestReloadUnderLoad(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	for name, options := range map[string]func(*testing.T) httpserver.Options{
		"HTTP/1.1": func(*testing.T) httpserver.Options { return httpserver.Options{} },
		"HTTP/2":   certificate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			s := serve(t, echo, o)
			url := "http://" + s.addr
			if o.CertFile != "" {
				url = "https://" + s.addr
			}
			transport := &http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8}
			defer transport.CloseIdleConnections()
			ctx, stop := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			var asked atomic.Int64
			for i := range 8 {
				clients.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						body := fmt.Sprint(i, n)
						// A request with a body that cannot be sent twice.
						r, err := http.NewRequestWithContext(t.Context(), "POST", url, io.NopCloser(strings.NewReader(body)))
						if err != nil {
							t.Error(err)
							return
						}
						resp, err := transport.RoundTrip(r)
						if err != nil {
							t.Errorf("during the reloads: %v", err)
							return
						}
						got, err := io.ReadAll(resp.Body)
						resp.Body.Close()
						if err != nil || string(got) != body || resp.Proto != name+".0" && resp.Proto != name {
							t.Errorf("during the reloads: %q in %s, %v; want %q in %s", got, resp.Proto, err, body, name)
						}
						asked.Add(1)
					}
				})
			}
			for i := range 30 {
				o.MaxConns = 100 + i
				mustReload(t, s.Server, echo, o)
				for before := asked.Load(); asked.Load() < before+20 && !t.Failed(); {
					time.Sleep(time.Millisecond)
				}
			}
			stop()
			clients.Wait()
		})
	}
}
