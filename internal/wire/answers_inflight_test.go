package wire

import (
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

var inProgress = part{
	title: "Requests in progress",
	text:  "Package `middleware/inflight`. When another request will finish is not known; Retry-After is one second.",
	answers: []answer{
		{
			name: "inflight_subject", title: "Too many concurrent requests",
			text: "The client has as many requests in progress as it may. Wait until one of them has finished, and send fewer at once.",
			handler: func(t *testing.T) http.Handler {
				identify := func(*http.Request) (inflight.Caller, error) { return inflight.Caller{Subject: "owner:ann"}, nil }
				return busy(t, must[*inflight.Limiter](t)(inflight.New(1, identify, inflight.Options{Errors: quiet})))
			},
		},
		{
			name: "inflight_process", title: "Overloaded",
			text: "The server has as many requests in progress as it can handle, of all clients together. Retry, with growing pauses. A proxy can try another server.",
			handler: func(t *testing.T) http.Handler {
				return busy(t, must[*inflight.Limiter](t)(inflight.NewProcess(1, inflight.Options{Errors: quiet})))
			},
		},
	},
}

// busy returns a handler behind l with one request in progress, which lasts until the end
// of the test.
func busy(t *testing.T, l *inflight.Limiter) http.Handler {
	entered := make(chan struct{})
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-t.Context().Done()
	}))
	go spend(h, 1)
	<-entered
	return h
}
