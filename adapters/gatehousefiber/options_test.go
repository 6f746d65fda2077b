package gatehousefiber_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"unsafe"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/adapters/gatehousefiber"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Subjects are copied, those of further charges too, and the slice that identify
// returned, which requests may share, stays as it is.
func TestStringsOfFiberAreCopied(t *testing.T) {
	var l stuck
	shared := []ratelimit.Charge{{Plan: plan}}
	var sent string
	limited := must(gatehousefiber.New(&l, func(r *http.Request) (ratelimit.Caller, error) {
		sent = gatehousefiber.Ctx(r).Get("User")
		shared[0].Subject = sent
		return ratelimit.Caller{Subject: sent, Plan: plan, Also: shared}, nil
	}, limit.Options{Errors: errs}))
	a := fiber.New()
	a.Use(limited)
	users := []string{"ann", "bob", "eve"}
	for _, user := range users {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("User", user)
		must(a.Test(r, fiber.TestConfig{Timeout: 0}))
		if unsafe.StringData(shared[0].Subject) != unsafe.StringData(sent) {
			t.Error("New has written to the slice that identify returned")
		}
	}
	for i, user := range users {
		if got := l.subjects[2*i : 2*i+2]; got[0] != user || got[1] != user {
			t.Errorf("the subjects of request %d have become %q, want twice %q", i, got, user)
		}
	}
}

// An error of Fiber is answered by Fiber, one of package apierror in the envelope.
func TestIdentifyFails(t *testing.T) {
	for _, test := range []struct {
		err    error
		shadow bool
		want   string
	}{
		{fiber.ErrUnauthorized, false, "401 the app says: Unauthorized"},
		{fmt.Errorf("session: %w", fiber.NewError(403, "no")), false, "500 the app says: session: no"},
		{apierror.New(402, "unpaid", "Pay first."), false, `402 {"code":"unpaid","message":"Pay first.","status":402}` + "\n"},
		{(*fiber.Error)(nil), false, `500 {"code":"internal","message":"The service failed to answer this request.","status":500}` + "\n"},
		{fiber.ErrUnauthorized, true, "200 ok"},
	} {
		limited := must(gatehousefiber.New(engine(), func(*http.Request) (ratelimit.Caller, error) {
			return ratelimit.Caller{}, test.err
		}, limit.Options{Errors: errs, Shadow: test.shadow}))
		a := fiber.New(fiber.Config{ErrorHandler: func(c fiber.Ctx, err error) error {
			status := 500
			if e, ok := err.(*fiber.Error); ok {
				status = e.Code
			}
			return c.Status(status).SendString("the app says: " + err.Error())
		}})
		a.Use(limited)
		a.Get("/", func(c fiber.Ctx) error { return c.SendString("ok") })
		if res, body := send(a, "GET", "/"); fmt.Sprintf("%d %s", res.StatusCode, body) != test.want {
			t.Errorf("identify returns an error: %d %s, want %s", res.StatusCode, body, test.want)
		}
	}
}

// A handler settles what its request has cost, also while its response is streamed.
func TestSettle(t *testing.T) {
	l := engine()
	a := app(l, limit.Options{Context: true, ChargeIf: limit.NotServerError})
	a.Get("/settle", func(c fiber.Ctx) error {
		return limit.FromContext(c.Context()).Settle(c.Context(), 2)
	})
	settled := make(chan error, 1)
	a.Get("/stream", func(c fiber.Ctx) error {
		reserved := limit.FromContext(c.Context())
		return c.SendStreamWriter(func(w *bufio.Writer) {
			_, _ = io.WriteString(w, "ok")
			settled <- reserved.Settle(context.Background(), 0)
		})
	})
	for _, test := range []struct {
		path string
		left int64
	}{{"/settle", 1}, {"/stream", 1}, {"/ok", 0}} {
		res, body := send(a, "GET", test.path)
		if test.path == "/stream" {
			if err := <-settled; err != nil {
				t.Errorf("Settle in a stream: %v", err)
			}
		}
		d := must(l.Peek(t.Context(), "user:ann", plan))
		if left := d.Remaining(); res.StatusCode != 200 || left != test.left {
			t.Errorf("%s: %d %s, %d left, want %d", test.path, res.StatusCode, body, left, test.left)
		}
	}
}

// A limit inside another one replaces its fields, and costs are charged.
func TestNestedLimitsAndCosts(t *testing.T) {
	a := app(engine(), limit.Options{})
	inner := must(gatehousefiber.New(engine(), ann, limit.Options{Cost: func(*http.Request) int64 { return 2 }}))
	a.Get("/costly", inner, func(c fiber.Ctx) error { return c.SendString("ok") })
	for _, want := range []string{"200 [1]", "429 [1]"} {
		res, _ := send(a, "GET", "/costly")
		if got := fmt.Sprint(res.StatusCode, " ", res.Header["X-Ratelimit-Remaining"]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// If the error handler of the app fails, the answer is a 500, which is given back.
func TestErrorHandlerFails(t *testing.T) {
	limited := must(gatehousefiber.New(engine(), ann, limit.Options{ChargeIf: limit.NotServerError}))
	a := fiber.New(fiber.Config{ErrorHandler: func(_ fiber.Ctx, err error) error { return err }})
	a.Use(limited)
	a.Get("/", func(fiber.Ctx) error { return fiber.ErrTeapot })
	for range 2 {
		if res, _ := send(a, "GET", "/"); res.StatusCode != 500 || res.Header.Get("X-RateLimit-Remaining") != "2" {
			t.Errorf("got %d, %s left, want 500 and 2", res.StatusCode, res.Header.Get("X-RateLimit-Remaining"))
		}
	}
}

// identify gets a request of net/http. The address in the header counts if a trusted proxy
// has put it there. Requests of App.Test come from 0.0.0.0.
func TestRequest(t *testing.T) {
	for trusted, want := range map[string]string{"0.0.0.0/8": "203.0.113.9", "10.0.0.0/8": "0.0.0.0"} {
		source := must(clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix(trusted)}))
		limited := must(gatehousefiber.New(engine(), func(r *http.Request) (ratelimit.Caller, error) {
			if got := source.Addr(r).String(); got != want {
				t.Errorf("with %s trusted the client is %s, want %s", trusted, got, want)
			}
			if r.Method != "PUT" || r.URL.String() != "/pets/a%20b?x=1" || r.Host != "example.com" || r.Header.Get("User") != "ann" {
				t.Errorf("identify gets %+v", r)
			}
			return ratelimit.Caller{Subject: "ann", Plan: plan}, nil
		}, limit.Options{}))
		a := fiber.New()
		a.Use(limited)
		r := httptest.NewRequest("PUT", "/pets/a%20b?x=1", nil)
		r.Header["X-Forwarded-For"] = []string{"6.6.6.6", "203.0.113.9, 0.0.0.2"}
		r.Header.Set("User", "ann")
		must(a.Test(r, fiber.TestConfig{Timeout: 0}))
	}
}
