package gatehousegin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/middleware"
)

func init() { gin.SetMode(gin.ReleaseMode) }

// recovery is gin.Recovery without its log.
var recovery = gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, _ any) { c.AbortWithStatus(500) })

func TestContract(t *testing.T) {
	contract.Test(t, contract.Adapter{
		Name: "gatehousegin",
		New: func(use []contract.Wrap, routes map[string]http.HandlerFunc) http.Handler {
			router := gin.New()
			gatehousegin.SetErrors(router, contract.Errors)
			for _, m := range use {
				if m == nil {
					router.Use(recovery)
				} else {
					router.Use(gatehousegin.Wrap(m...))
				}
			}
			for pattern, h := range routes {
				method, path, _ := strings.Cut(pattern, " ")
				router.Handle(method, path, func(c *gin.Context) { h(c.Writer, c.Request) })
			}
			router.GET("/abort", func(c *gin.Context) { c.AbortWithStatus(502) })
			router.GET("/json", func(c *gin.Context) { c.AbortWithStatusJSON(500, gin.H{"error": "sorry"}) })
			return router
		},
		Own: []contract.Own{
			{Method: "GET", Path: "/abort", Line: contract.Line{Route: "/abort", Status: 502}},
			{Method: "GET", Path: "/json", Line: contract.Line{Route: "/json", Status: 500, Bytes: 17}},
			{Method: "PUT", Path: "/ok", Line: contract.Line{Status: 405, Bytes: 135}},
		},
	})
}

// A refusal stops Gin, which would call the other handlers of the route.
func TestRefusalsAbort(t *testing.T) {
	called := 0
	h := func(*gin.Context) { called++ }
	router := gin.New()
	router.Use(gatehousegin.Wrap(func(http.Handler) http.Handler { return http.NotFoundHandler() }))
	router.GET("/", h, h)
	if got := contract.Serve(t, router)("GET", "/", ""); got.Status != 404 || called != 0 {
		t.Errorf("%d after %d handlers, want the refusal after 0", got.Status, called)
	}
}

// Context finds what handlers of Gin have set.
func TestContext(t *testing.T) {
	user := ""
	router := gin.New()
	router.Use(func(c *gin.Context) {
		c.Set("user", "ann")
		before := c.Writer
		c.Next()
		if c.Writer != before {
			t.Error("handlers around Wrap find another Writer after it")
		}
	}, gatehousegin.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user = gatehousegin.Context(r).GetString("user")
			next.ServeHTTP(w, r)
		})
	}))
	router.GET("/", func(*gin.Context) {})
	contract.Serve(t, router)("GET", "/", "")
	if user != "ann" {
		t.Errorf("the user is %q, want ann", user)
	}
	if c := gatehousegin.Context(httptest.NewRequest("GET", "/", nil)); c != nil {
		t.Errorf("outside of Wrap there is a context: %v", c)
	}
}

// What gin.Recovery and the default 404 lose is in the package comment.
func TestWhatGinKeepsOutside(t *testing.T) {
	router := gin.New()
	router.Use(recovery, gatehousegin.Wrap(contract.Errors.Recover))
	router.GET("/", func(c *gin.Context) {
		c.String(200, "half")
		c.Writer.Flush()
		panic(http.ErrAbortHandler)
	})
	if got := contract.Serve(t, router)("GET", "/", ""); got.Err != nil {
		t.Errorf("gin.Recovery passes ErrAbortHandler on: %v; change the package comment", got.Err)
	}
	var log contract.Log
	router = gin.New()
	router.Use(gatehousegin.Wrap(middleware.AccessLog(log.Logger())))
	if got := contract.Serve(t, router)("GET", "/nowhere", ""); got.Body != "404 page not found" {
		t.Errorf("got %q", got.Body)
	}
	if line := log.Line(t); line != (contract.Line{Status: 404}) {
		t.Errorf("the log says %+v", line)
	}
}
