package compatibility

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A behaviour is what a handler does, and a client that observes it.
type behaviour struct {
	name string

	// proof is a line that the bare handler must lead to, over HTTP/1.1 and over HTTP/2:
	// without it the comparison would show nothing. "" means that the behaviour is not
	// tried over that protocol.
	proof [2]string

	// serve is the handler. It notes what it finds with c.served.
	serve func(c *cell, w http.ResponseWriter, r *http.Request)

	// ask is the client. It notes what it gets with c.received. Nil: one GET.
	ask func(c *cell)

	// hijacks says that the handler itself writes the response, so that it need not
	// have the fields of the middleware.
	hijacks bool

	// closes says that the server is closed before the temporary files are counted,
	// since net/http removes them after the response.
	closes bool

	// removes names a field that the handler itself removes.
	removes string

	// unlike names a field that may differ, for a reason given where it is set.
	unlike string
}

func allBehaviours() []behaviour {
	return slices.Concat(contents, ranges, streams, interims, trailers, connections, aborts, requests, forms)
}

func TestMatrix(t *testing.T) {
	// Temporary files of forms are counted here.
	file, dir := largeFile(t), t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	defer servers.Wait()
	for _, b := range allBehaviours() {
		for protocol, proof := range b.proof {
			if proof == "" {
				continue
			}
			t.Run(b.name+"/"+[]string{"http1", "http2"}[protocol], func(t *testing.T) {
				want := observe(t, b, protocol == 1, dir, file, wrapped{})
				if !slices.ContainsFunc(want, func(line string) bool { return strings.Contains(line, proof) }) {
					t.Fatalf("without a middleware, no line contains %q:\n%s", proof, strings.Join(want, "\n"))
				}
				for _, m := range middlewares {
					t.Run(m.name, func(t *testing.T) {
						got := observe(t, b, protocol == 1, dir, file, m)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("the handler and its client note something else inside of the middleware (-without +inside):\n%s", diff)
						}
					})
				}
			})
		}
	}
}
