package inflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

// Middleware returns a handler that serves a request with next if the limit allows it.
// All handlers that Middleware returns share the limit.
func (l *Limiter) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(w, r, next) })
}

func (l *Limiter) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	var c Caller
	if l.identify != nil {
		var err error
		if c, err = l.identify(r); err == nil {
			err = c.check()
		}
		if err != nil {
			l.opts.Errors.Respond(w, r, err)
			return
		}
	}
	shard := l.shard(c.Subject)
	d := l.enter(r.Context(), shard, c.Subject, cmp.Or(c.Limit, l.limit))
	if d.Admitted {
		defer shard.leave(c.Subject) // from here on, whatever panics
		if l.opts.Shared != nil {
			var leave func()
			if d, leave = l.share(r.Context(), c.Subject, d); leave != nil {
				defer leave()
			}
		}
	}
	if l.opts.Observe != nil {
		l.opts.Observe(r, c, d)
	}
	if !d.Admitted {
		l.refuse(w, r, d)
		return
	}
	next.ServeHTTP(w, r)
}

func (l *Limiter) refuse(w http.ResponseWriter, r *http.Request, d Decision) {
	if err := r.Context().Err(); 0 < d.Waited && d.Waited < l.opts.Wait && errors.Is(err, context.Canceled) {
		l.opts.Errors.Respond(w, r, err) // the client gave up first
		return
	}
	refused := l.refused
	if d.Limit != l.limit {
		refused = tooManyRequests(d.Limit)
	}
	l.opts.Errors.Respond(w, r, refused)
}

func (c *Caller) check() error {
	switch {
	case c.Subject == "":
		return errors.New("inflight: identify returned a Caller without a Subject")
	case c.Limit < 0:
		return fmt.Errorf("inflight: identify returned a Caller with Limit %d; it must be 1 or more, or 0 for the limit given to New", c.Limit)
	}
	return nil
}

// overloaded has the problem type of draft-ietf-httpapi-ratelimit-headers-11 section
// 5.2.
var overloaded = (&apierror.Error{
	Status: http.StatusServiceUnavailable, Code: "overloaded", RetryAfter: time.Second,
	Message:      "The service is handling as many requests as it can. Wait as long as Retry-After says.",
	ProblemType:  "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
	ProblemTitle: "Temporary Reduced Capacity",
}).Preencoded()

func tooManyRequests(limit int) *apierror.Error {
	it := "one"
	if limit == 1 {
		it = "it"
	}
	e := apierror.New(http.StatusTooManyRequests, "too_many_concurrent_requests",
		"Only "+strconv.Itoa(limit)+" of your requests may be in progress at a time. Wait for "+it+" to finish before you send the next.")
	e.Args, e.RetryAfter = map[string]any{"limit": limit}, time.Second
	return e
}
