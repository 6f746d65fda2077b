package gatehousegin_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// recovery is gin.Recovery without its log.
var recovery = gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, _ any) { c.AbortWithStatus(500) })

// ends are the ways in which a handler ends.
var ends = map[string]gin.HandlerFunc{
	"ok":       func(c *gin.Context) { c.String(200, "ok") },
	"nothing":  func(*gin.Context) {},
	"status":   func(c *gin.Context) { c.Status(503) },
	"abort":    func(c *gin.Context) { c.AbortWithStatus(502) },
	"json":     func(c *gin.Context) { c.AbortWithStatusJSON(500, gin.H{"error": "sorry"}) },
	"notfound": func(c *gin.Context) { c.Status(404) },
	"panic":    func(*gin.Context) { panic("no") },
	"late":     func(c *gin.Context) { c.String(200, "half"); c.Writer.Flush(); panic("no") },
}

// withEnds has a route for each of them.
func withEnds(use ...gin.HandlerFunc) *gin.Engine {
	router := gin.New()
	router.Use(use...)
	for name, h := range ends {
		router.GET("/"+name, h)
	}
	return router
}

// A request is charged, limited and banned, and given back if it fails in any of the ways
// that Gin has, with the recovery of either side.
func TestRateLimit(t *testing.T) {
	refund := limit.Options{ChargeIf: limit.NotServerError}
	for name, router := range map[string]*gin.Engine{
		"Recover around the limit": withEnds(gatehousegin.Wrap(middleware.Recover(errs), limiter(t, refund))),
		"Recover inside the limit": withEnds(gatehousegin.Wrap(limiter(t, refund), middleware.Recover(errs))),
		"Recover in another Wrap":  withEnds(gatehousegin.Wrap(limiter(t, refund)), gatehousegin.Wrap(middleware.Recover(errs))),
		"gin.Recovery outside":     withEnds(recovery, gatehousegin.Wrap(limiter(t, refund))),
		"gin.Recovery inside":      withEnds(gatehousegin.Wrap(limiter(t, refund)), recovery),
	} {
		t.Run(name, func(t *testing.T) {
			send := serve(t, router)
			for _, test := range []struct {
				path      string
				status    int
				remaining string
			}{
				{"/ok", 200, "2"},
				{"/status", 503, "1"}, // given back, like the others
				{"/abort", 502, "1"},
				{"/json", 500, "1"},
				{"/panic", 500, "1"},
				{"/notfound", 404, "1"},
				{"/nothing", 200, "0"},
				{"/ok", 429, "0"},
				{"/ok", 429, "0"},
			} {
				got := send("GET", test.path, "")
				if got.status != test.status || got.remaining() != test.remaining {
					t.Errorf("%s: %d with %s left, want %d with %s", test.path, got.status, got.remaining(), test.status, test.remaining)
				}
			}
			if got := send("GET", "/ok", ""); got.code() != "client_banned" || got.header.Get("Retry-After") != "60" {
				t.Errorf("got %s and Retry-After %q, want a ban of 60 seconds", got.body, got.header.Get("Retry-After"))
			}
		})
	}
}

func TestRefusalsAbort(t *testing.T) {
	called := 0
	h := func(*gin.Context) { called++ }
	router := gin.New()
	router.Use(gatehousegin.Wrap(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			errs.Respond(w, r, http.ErrBodyNotAllowed)
		})
	}))
	router.GET("/", h, h)
	if got := serve(t, router)("GET", "/", ""); got.status != 500 || got.code() != "internal" || called != 0 {
		t.Errorf("%d %s after %d handlers, want the refusal after 0", got.status, got.body, called)
	}
}

// ChargeIf sees the status of Gin, and a handler of Gin settles.
func TestChargeIfAndSettle(t *testing.T) {
	router := withEnds(gatehousegin.Wrap(limiter(t, limit.Options{
		Context:  true,
		ChargeIf: func(_ *http.Request, status int) bool { return status != 404 },
	})))
	router.GET("/settle", func(c *gin.Context) {
		ctx := c.Request.Context()
		if err := limit.FromContext(ctx).Settle(ctx, 2); err != nil {
			t.Error(err)
		}
	})
	send := serve(t, router)
	for _, want := range []struct{ path, remaining string }{
		{"/notfound", "2"}, {"/notfound", "2"}, {"/settle", "2"}, {"/ok", "0"},
	} {
		if got := send("GET", want.path, "").remaining(); got != want.remaining {
			t.Errorf("%s: %s left, want %s", want.path, got, want.remaining)
		}
	}
}

// The access log has route, status and bytes, whatever answered.
func TestAccessLog(t *testing.T) {
	var log logbook
	router := withEnds(gatehousegin.Wrap(middleware.RequestID, middleware.AccessLog(log.logger()), middleware.Recover(errs)))
	router.GET("/pets/:id", func(c *gin.Context) { c.String(201, "rex") })
	gatehousegin.SetErrors(router, errs)
	send := serve(t, router)
	for _, test := range []struct {
		method, path string
		want         logLine
	}{
		{"GET", "/pets/17", logLine{"/pets/:id", 201, 3, false}},
		{"GET", "/nothing", logLine{"/nothing", 200, 0, false}},
		{"GET", "/status", logLine{"/status", 503, 0, false}},
		{"GET", "/json", logLine{"/json", 500, 17, false}},
		{"GET", "/panic", logLine{"/panic", 500, 88, false}},
		{"GET", "/late", logLine{"/late", 200, 4, true}},
		{"GET", "/nowhere", logLine{"", 404, 77, false}},
		{"PUT", "/ok", logLine{"", 405, 135, false}},
	} {
		got := send(test.method, test.path, "")
		if line := log.line(t); line != test.want {
			t.Errorf("%s: the log says %+v, want %+v", test.path, line, test.want)
		}
		if got.err == nil && len(got.body) != test.want.Bytes {
			t.Errorf("%s: the client gets %d bytes, the log says %d: %s", test.path, len(got.body), test.want.Bytes, got.body)
		}
		if (got.err != nil) != test.want.Aborted {
			t.Errorf("%s: the client gets the error %v", test.path, got.err)
		}
	}
}

// Each middleware of the repository works, and what it puts into the context arrives.
func TestEachMiddleware(t *testing.T) {
	auth, err := bearer.New("pets", func(_ context.Context, token string) (string, error) {
		if token != "ann" {
			return "", bearer.ErrInvalid
		}
		return token, nil
	}, bearer.Options{Errors: errs})
	if err != nil {
		t.Fatal(err)
	}
	old := deprecation.MustNew(deprecation.Options{Since: noon, Successor: "/v2", Errors: errs})
	removed := deprecation.MustNew(deprecation.Options{Since: noon.AddDate(-2, 0, 0), Sunset: noon.AddDate(-1, 0, 0), Successor: "/v2", Errors: errs})
	source := clientip.FromRemoteAddr()

	router := gin.New()
	router.Use(gatehousegin.Wrap(middleware.RequestID, middleware.SecurityHeaders, auth.Identify, limiter(t, limit.Options{}), auth.Require,
		middleware.BodyLimit(4, errs)))
	router.POST("/pets/:id", gatehousegin.Wrap(old.Enforce), func(c *gin.Context) {
		user, _ := bearer.FromContext[string](c.Request.Context())
		body, err := io.ReadAll(c.Request.Body)
		if err != nil {
			errs.Respond(c.Writer, c.Request, err)
			return
		}
		c.String(200, "%s %s %s %s %t %t", user, body, c.Param("id"), c.Request.PathValue("id"),
			middleware.RequestIDFrom(c.Request.Context()) == c.Writer.Header().Get("X-Request-Id"), source.Addr(c.Request).IsLoopback())
	})
	router.GET("/removed", gatehousegin.Wrap(removed.Enforce), func(*gin.Context) { t.Error("called after the sunset") })
	send := serve(t, router)
	got := send("POST", "/pets/17", "body")
	if got.status != 200 || got.body != "ann body 17 17 true true" || got.remaining() != "2" {
		t.Errorf("got %d %q with %s left", got.status, got.body, got.remaining())
	}
	for _, field := range []string{"X-Request-Id", "X-Content-Type-Options", "Deprecation", "Link"} {
		if len(got.header[field]) != 1 {
			t.Errorf("the response has %d lines of %s, want 1", len(got.header[field]), field)
		}
	}
	if got := send("GET", "/removed", ""); got.status != 410 || got.code() != "operation_removed" || got.remaining() != "1" {
		t.Errorf("after the sunset: %d %s with %s left", got.status, got.code(), got.remaining())
	}
	if got := send("POST", "/pets/17", "bodies"); got.status != 413 || got.code() != "body_too_large" {
		t.Errorf("a long body: %d %s", got.status, got.body)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/pets/17", nil)
	r.Header.Set("Authorization", "Bearer bob")
	router.ServeHTTP(w, r)
	if w.Code != 429 { // the limit is around Require
		t.Errorf("an unknown key: %d, want 429", w.Code)
	}
}
