package gatehousefiber_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/proxy"
	fiberrecover "github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/gofiber/fiber/v3/middleware/static"

	"github.com/animalstore/gatehouse/adapters/gatehousefiber"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	errs = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	plan = ratelimit.MustPlan("small", ratelimit.Penalty{}, ratelimit.PerMinute(3))
)

func engine() *memory.Limiter {
	return testcheck.Must(memory.New(memory.Options{Now: func() time.Time { return noon }}))
}

func ann(*http.Request) (ratelimit.Caller, error) {
	return ratelimit.Caller{Subject: "user:ann", Plan: plan}, nil
}

// app limits ann.
func app(l ratelimit.Limiter, o limit.Options) *fiber.App {
	o.Errors = errs
	a := fiber.New()
	a.Use(fiberrecover.New(), testcheck.Must(gatehousefiber.New(l, ann, o)))
	return a
}

func ok(c fiber.Ctx) error { return c.SendString("ok") }

func send(a *fiber.App, path string, header ...string) (*http.Response, string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res := testcheck.Must(a.Test(r, fiber.TestConfig{Timeout: 0}))
	return res, string(testcheck.Must(io.ReadAll(res.Body)))
}

// A request is given back if it fails in one of Fiber's ways.
func TestEnds(t *testing.T) {
	a := app(engine(), limit.Options{ChargeIf: limit.NotServerError})
	a.Get("/error", func(fiber.Ctx) error { return errors.New("sorry") })
	a.Get("/fiber", func(fiber.Ctx) error { return fiber.NewError(502, "sorry") })
	a.Get("/notfound", func(fiber.Ctx) error { return fiber.ErrNotFound })
	a.Get("/status", func(c fiber.Ctx) error { return c.SendStatus(503) })
	for _, test := range []struct {
		path, want string
	}{
		{"/error", "500 sorry, 2 left"}, {"/fiber", "502 sorry, 2 left"}, {"/status", "503 Service Unavailable, 2 left"},
		{"/notfound", "404 Not Found, 2 left"}, {"/nowhere", "404 Not Found, 1 left"},
	} {
		res, body := send(a, test.path)
		if got := fmt.Sprintf("%d %s, %s left", res.StatusCode, body, res.Header.Get("X-RateLimit-Remaining")); got != test.want {
			t.Errorf("%s: %s, want %s", test.path, got, test.want)
		}
	}
}

// The client chooses the form of the refusal, which has the Vary of handlers around. Handlers
// may change the fields, and what replaces all of them has them again.
func TestFields(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Own", "1") }))
	defer upstream.Close()
	root := testcheck.Must(os.OpenRoot(t.TempDir()))
	testcheck.NoError(t, root.WriteFile("a.txt", nil, 0o600))
	a := fiber.New()
	a.Use(func(c fiber.Ctx) error { c.Vary("Origin"); return c.Next() })
	a.Use(testcheck.Must(gatehousefiber.New(engine(), ann, limit.Options{})))
	a.Get("/own", func(c fiber.Ctx) error { c.Set("X-RateLimit-Remaining", "own"); return nil })
	a.Get("/proxy", proxy.Forward(upstream.URL))
	a.Use("/files", static.New(root.Name()))
	for _, test := range []struct{ path, want string }{
		{"/own", "200 [own]"}, {"/files/a.txt", "304 [1]"}, {"/proxy", "200 [0]"}, {"/own", "429 [0]"},
	} {
		res, _ := send(a, test.path, "If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat),
			"Accept", "application/json;q=0.5", "Accept", "application/problem+json")
		if got := fmt.Sprint(res.StatusCode, " ", res.Header["X-Ratelimit-Remaining"]); got != test.want {
			t.Errorf("%s: %s, want %s", test.path, got, test.want)
		}
		if res.StatusCode == 429 && (res.Header.Get("Content-Type") != "application/problem+json" || res.Header.Get("Vary") != "Origin, Accept") {
			t.Errorf("the refusal has the fields %v", res.Header)
		}
	}
}

// Subjects are copied, those of further charges too, and the slice that identify
// returned, which requests may share, stays as it is.
func TestStringsOfFiberAreCopied(t *testing.T) {
	var got []ratelimit.Caller
	shared := []ratelimit.Charge{{Plan: plan}}
	limited := testcheck.Must(gatehousefiber.New(engine(), func(r *http.Request) (ratelimit.Caller, error) {
		user := gatehousefiber.Ctx(r).Get("User")
		shared[0].Subject = "of " + user
		return ratelimit.Caller{Subject: user, Plan: plan, Also: shared}, nil
	}, limit.Options{Observe: func(_ *http.Request, c ratelimit.Caller, _ ratelimit.Decision, _ error) { got = append(got, c) }}))
	a := fiber.New()
	a.Use(limited)
	users := []string{"ann", "bob", "eve"}
	for _, user := range users {
		send(a, "/", "User", user)
	}
	for i, user := range users {
		if got[i].Subject != user || got[i].Also[0].Subject != "of "+user {
			t.Errorf("the caller of request %d has become %+v", i, got[i])
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
		{fmt.Errorf("session: %w", fiber.NewError(403, "no")), false, "403 the app says: session: no"},
		{apierror.New(402, "unpaid", "Pay first."), false, `402 {"code":"unpaid","message":"Pay first.","status":402}` + "\n"},
		{(*fiber.Error)(nil), false, `500 {"code":"internal","message":"The service failed to answer this request.","status":500}` + "\n"},
		{fiber.ErrUnauthorized, true, "200 ok"},
	} {
		limited := testcheck.Must(gatehousefiber.New(engine(), func(*http.Request) (ratelimit.Caller, error) {
			return ratelimit.Caller{}, test.err
		}, limit.Options{Errors: errs, Shadow: test.shadow}))
		a := fiber.New(fiber.Config{ErrorHandler: func(c fiber.Ctx, err error) error {
			status := 500
			if e, ok := errors.AsType[*fiber.Error](err); ok {
				status = e.Code
			}
			return c.Status(status).SendString("the app says: " + err.Error())
		}})
		a.Use(limited)
		a.Get("/", func(c fiber.Ctx) error { return c.SendString("ok") })
		if res, body := send(a, "/"); fmt.Sprintf("%d %s", res.StatusCode, body) != test.want {
			t.Errorf("identify returns an error: %d %s, want %s", res.StatusCode, body, test.want)
		}
	}
}

// A handler settles what its request has cost also while its response is streamed.
func TestSettleInStream(t *testing.T) {
	l, settled := engine(), make(chan error, 1)
	a := app(l, limit.Options{Settle: true, ChargeIf: limit.NotServerError})
	a.Get("/", func(c fiber.Ctx) error {
		reserved := limit.FromContext(c.Context())
		return c.SendStreamWriter(func(w *bufio.Writer) {
			_, _ = io.WriteString(w, "ok")
			settled <- reserved.Settle(context.Background(), 2)
		})
	})
	send(a, "/")
	err := <-settled
	if d := testcheck.Must(l.Peek(t.Context(), "user:ann", plan)); err != nil || d.Remaining() != 1 {
		t.Errorf("Settle in a stream: %v, and %d are left, want 1", err, d.Remaining())
	}
}

// A path is what the client sends, and Fiber serves several of them by one route: a cost
// belongs to a limit on the route.
func TestCostByRoute(t *testing.T) {
	l := engine()
	costly := testcheck.Must(gatehousefiber.New(l, ann, limit.Options{Name: "api", Cost: func(*http.Request) int64 { return 2 }}))
	cheap := testcheck.Must(gatehousefiber.New(l, ann, limit.Options{Name: "api"}))
	a := fiber.New()
	a.Get("/search", costly, ok)
	a.Get("/pets", cheap, ok)
	addr := serve(t, a)
	for _, test := range []struct{ path, want string }{
		{"/search#x", "200 1"}, {"/SEARCH/", "429 1"}, {"/pets", "200 0"},
	} {
		res := exchange(addr, "GET "+test.path+" HTTP/1.1\r\nHost: pets\r\n\r\n")
		if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get("X-RateLimit-Remaining")); got != test.want {
			t.Errorf("%s: %s left, want %s", test.path, got, test.want)
		}
	}
}

// exchange sends requests over one connection, and returns the last response.
func exchange(addr string, requests ...string) (res *http.Response) {
	conn := testcheck.Must(net.Dial("tcp", addr))
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for _, text := range requests {
		_ = testcheck.Must(io.WriteString(conn, text))
		res = testcheck.Must(http.ReadResponse(answers, nil))
		_, _ = io.Copy(io.Discard, res.Body)
	}
	return res
}

// If the error handler of the app fails, the answer is a 500, which is given back.
func TestErrorHandlerFails(t *testing.T) {
	limited := testcheck.Must(gatehousefiber.New(engine(), ann, limit.Options{ChargeIf: limit.NotServerError}))
	a := fiber.New(fiber.Config{ErrorHandler: func(_ fiber.Ctx, err error) error { return err }})
	a.Use(limited)
	a.Get("/", func(fiber.Ctx) error { return fiber.ErrTeapot })
	for range 2 {
		if res, _ := send(a, "/"); res.StatusCode != 500 || res.Header.Get("X-RateLimit-Remaining") != "2" {
			t.Errorf("got %d, %s left, want 500 and 2", res.StatusCode, res.Header.Get("X-RateLimit-Remaining"))
		}
	}
}

// Observe gets a request like that of net/http, without a body, and may keep it: the next
// request on the connection changes nothing. The address in the header counts if a trusted
// proxy has put it there.
func TestRequest(t *testing.T) {
	const lines = "PUT /pets/one?x=1 HTTP/1.1\r\nHost: one.example\r\nUser: one\r\nUser-Agent: one\r\nCookie: a=one; b=one\r\n" +
		"Content-Type: text/one\r\nContent-Length: 0\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 127.0.0.2\r\n\r\n"
	requests := []string{lines, strings.NewReplacer("PUT", "GET", "one", "two", "203", "198").Replace(lines)}
	var want, got []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { want = append(want, r) }))
	exchange(server.Listener.Addr().String(), requests...)
	server.Close()
	a := app(engine(), limit.Options{Observe: func(r *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, _ error) { got = append(got, r) }})
	exchange(serve(t, a), requests...)
	for i := range want {
		for _, field := range reflect.VisibleFields(reflect.TypeFor[http.Request]()) {
			if !field.IsExported() || field.Name == "RemoteAddr" { // of another connection
				continue
			}
			w, g := reflect.ValueOf(*want[i]).FieldByIndex(field.Index).Interface(), reflect.ValueOf(*got[i]).FieldByIndex(field.Index).Interface()
			if !reflect.DeepEqual(w, g) {
				t.Errorf("request %d: %s is %v, in net/http %v", i, field.Name, g, w)
			}
		}
	}
	for trusted, client := range map[string]string{"127.0.0.0/8": "203.0.113.9", "10.0.0.0/8": "127.0.0.1"} {
		source := testcheck.Must(clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix(trusted)}))
		if addr := source.Addr(got[0]).String(); addr != client {
			t.Errorf("with %s trusted the client is %s, want %s", trusted, addr, client)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := gatehousefiber.New(engine(), nil, limit.Options{}); err == nil {
		t.Error("no identify is accepted")
	}
	if _, err := gatehousefiber.New(nil, ann, limit.Options{}); err == nil {
		t.Error("no engine is accepted")
	}
	if _, err := gatehousefiber.New(engine(), ann, limit.Options{Settle: true, Hold: time.Minute}); err == nil || !strings.Contains(err.Error(), "Options.Hold must be 0") {
		t.Errorf("with Hold: %v, want an error that names it", err)
	}
}
