package contract

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A Service is a service with a limit of an adapter, which TestLimits compares with one of
// net/http.
type Service struct {
	Name   string
	RPC    bool  // it has no other fields than those of the limit, and none in shadow mode
	NoAuth bool  // the adapter does not authenticate
	Native error // an error of identify in the form of the framework, which means 401; nil if there is none

	// Start starts the service and returns a function that sends a request to it. A panic
	// of the handler is answered with 500.
	Start func(t *testing.T, c Chain) func(Request) Answer
}

// A Chain is what a service runs, the outermost first: Identify of Auth, the limits, Require
// of Auth, and a handler that gets the text of the request and returns a status. Auth may
// be nil.
type Chain struct {
	Auth   *bearer.Authenticator[string]
	Limits []Limit
	Handle func(ctx context.Context, text string) (status int)
}

// A Limit has the arguments of a constructor. If Refund is true, ChargeIf is NotServerError.
type Limit struct {
	Engine   ratelimit.Limiter
	Identify func(*http.Request) (ratelimit.Caller, error)
	Options  limit.Options
	Refund   bool
}

// Middlewares returns the chain around the handler. Recover is the outermost.
func (c Chain) Middlewares(t *testing.T) []middleware.Middleware {
	t.Helper()
	all := []middleware.Middleware{Errors.Recover}
	if c.Auth != nil {
		all = append(all, c.Auth.Identify)
	}
	for _, l := range c.Limits {
		if l.Refund {
			l.Options.ChargeIf = limit.NotServerError
		}
		m := testcheck.Must(limit.New(l.Engine, l.Identify, l.Options))
		all = append(all, m)
	}
	if c.Auth != nil {
		all = append(all, c.Auth.Require)
	}
	return all
}

// ServeHTTP is the handler.
func (c Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := c.Handle(r.Context(), strings.TrimPrefix(r.URL.Path, "/")); status != http.StatusOK {
		w.WriteHeader(status)
	}
}

// A Request is one to a Service.
type Request struct {
	Method        string // not of RPC
	Text          string // for the handler, and the path
	Authorization []string
}

// HTTP returns a Service of an adapter for net/http. router returns a router that runs the
// middlewares around h.
func HTTP(router func(h http.Handler, m ...middleware.Middleware) http.Handler) Service {
	return Service{Start: func(t *testing.T, c Chain) func(Request) Answer {
		send := Serve(t, router(c, c.Middlewares(t)...))
		return func(r Request) Answer { return send(r.Method, "/"+r.Text, "", r.Authorization...) }
	}}
}

// reference is what other services are compared with.
var reference = HTTP(middleware.Chain)

// TestLimits sends the same requests to the services of an adapter and to one of net/http, and
// compares what client, handler, Observe, the log and the engine see of them. RPC and NoAuth
// are the same for all services of an adapter.
func TestLimits(t *testing.T, services ...Service) {
	for _, sc := range scenarios {
		if s := services[0]; s.RPC && sc.httpOnly || s.NoAuth && sc.tokens != nil {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			want := sc.transcript(t, reference, services[0])
			for _, s := range services {
				if got := sc.transcript(t, s, s); got != want {
					t.Errorf("net/http:\n%s\nthe adapter, %s:\n%s", want, s.Name, got)
				}
			}
		})
	}
}

// transcript runs the scenario with s and returns what was seen, as far as it can be seen of
// the other service too: the transcript of net/http leaves out what an adapter does not have.
func (sc *scenario) transcript(t *testing.T, s, other Service) string {
	t.Helper()
	var log Log
	clock := NewClock()
	clock.Advance(time.Second / 2)
	engine := clock.Engine(t)
	chain := Chain{Limits: []Limit{sc.limit(s, engine, &log)}, Handle: sc.handler(t, engine, &log)}
	if sc.nested {
		outer := Limit{Engine: engine, Identify: Caller(ratelimit.Caller{Subject: "ann", Plan: wide}), Options: limit.Options{Name: "wide", Headers: both}}
		chain.Limits = append([]Limit{outer}, chain.Limits...)
	}
	if sc.tokens != nil {
		chain.Auth = authenticator(t, chain.Limits[0].Options.Errors)
	}
	send := s.Start(t, chain)
	for i, text := range strings.Fields(sc.requests) {
		r := Request{Method: http.MethodGet, Text: text, Authorization: []string{}}
		if text == http.MethodHead {
			r.Method, r.Text = text, "ok"
		}
		if sc.tokens != nil && sc.tokens[i] != "" {
			for token := range strings.SplitSeq(sc.tokens[i], ",") {
				r.Authorization = append(r.Authorization, "Bearer "+token)
			}
		}
		before := log.String()
		a := send(r)
		refused := !strings.Contains(strings.TrimPrefix(log.String(), before), "the handler")
		_, _ = fmt.Fprintf(&log, "%s: %s, then %s\n", text, sc.seen(a, s, other, refused), sc.used(t, engine))
	}
	return log.String()
}

func (sc *scenario) limit(s Service, engine ratelimit.Limiter, log *Log) Limit {
	l := Limit{Engine: engine, Identify: sc.identify(s.Native), Options: sc.options, Refund: sc.refund}
	if sc.down {
		l.Engine = down{}
	}
	errs := apierror.Responder{}
	if l.Options.Errors != nil {
		errs = *l.Options.Errors
	}
	errs.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if slices.Contains([]string{slog.TimeKey, "method", "route"}, a.Key) || sc.native() && a.Key == "error" {
			return slog.Attr{}
		}
		return a
	}}))
	l.Options.Errors = &errs
	l.Options.Observe = func(_ *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
		if sc.native() && err != nil {
			err = ratelimit.ErrUnavailable // the text is that of the framework
		}
		plan := "no plan"
		if c.Plan != nil {
			plan = c.Plan.Name()
		}
		_, _ = fmt.Fprintf(log, "Observe: %s, %s, %v, cost %d, %v\n", c.Subject, plan, d.Outcome, d.Cost, err)
	}
	return l
}

// handler notes what the handler sees, and does what the text says.
func (sc *scenario) handler(t *testing.T, engine *memory.Limiter, log *Log) func(context.Context, string) int {
	return func(ctx context.Context, text string) int {
		reserved := limit.FromContext(ctx)
		_, _ = fmt.Fprintf(log, "the handler: %s, a settlement of %q, %s\n", text, reserved.Caller().Subject, sc.used(t, engine))
		if strings.HasPrefix(text, "settle") {
			_, _ = fmt.Fprintln(log, "Settle:", reserved.Settle(ctx, 2))
		}
		switch {
		case text == "panic":
			panic("no")
		case text == "notfound":
			return http.StatusNotFound
		case text == "unavailable":
			return http.StatusServiceUnavailable
		case strings.HasSuffix(text, "internal"):
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}
}

// seen is what the client of s sees.
func (sc *scenario) seen(a Answer, s, other Service, refused bool) string {
	lines := sc.fields(a.Header, s, other, refused)
	if wait := (a.Wait + time.Second - 1).Truncate(time.Second); sc.wall {
		lines = append(lines, fmt.Sprint("a wait: ", wait > 0))
	} else {
		lines = append(lines, fmt.Sprint("a wait of ", wait))
	}
	switch {
	case !refused || sc.err == errNative:
	case other.RPC:
		lines = append(lines, a.Code(), a.Message())
	default:
		lines = append(lines, a.Body)
	}
	return fmt.Sprint(a.Status, " ", lines)
}

// fields are the header fields of a response of s that the other service has too: those of
// the limit and, of a refusal over HTTP, all.
func (sc *scenario) fields(h http.Header, s, other Service, refused bool) (lines []string) {
	all := refused && !other.RPC && !sc.native()
	limits := !(sc.options.Shadow && other.RPC && !s.RPC) // which has none in shadow mode
	for name, values := range h {
		noise := s.RPC && (name == "Cache-Control" || name == "X-Content-Type-Options") // of responses with a body
		if !(limits && isLimitField(name) || all && name != "Date" || noise) {
			continue
		}
		if sc.wall && (name == "X-Ratelimit-Reset" || name == "Retry-After") {
			values = nil
		}
		lines = append(lines, fmt.Sprint(name, values))
	}
	slices.Sort(lines)
	return lines
}

func isLimitField(name string) bool {
	return strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Ratelimit") || name == "Retry-After" || name == "Www-Authenticate"
}

// used is what the engine has counted.
func (sc *scenario) used(t *testing.T, engine *memory.Limiter) string {
	subject := "ann"
	if sc.options.Name != "" {
		subject = sc.options.Name + "/ann"
	}
	return fmt.Sprintf("%d, %d and %d used", Used(t, engine, subject, wide), Used(t, engine, "all", wide), Used(t, engine, "network:127.0.0.1", wide))
}
