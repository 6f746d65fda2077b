package gatehousegin_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// HandleContext runs the middlewares again: the comment of Wrap says so.
func TestHandleContext(t *testing.T) {
	router := gin.New()
	router.Use(gatehousegin.Wrap(contract.Limiter(t, limit.Options{})))
	router.GET("/old", func(c *gin.Context) { c.Request.URL.Path = "/new"; router.HandleContext(c) })
	router.GET("/new", func(*gin.Context) {})
	if got := contract.Serve(t, router)("GET", "/old", ""); got.Remaining() != "1" {
		t.Errorf("%s of 3 are left, want 1", got.Remaining())
	}
}

// The last error of the handlers is answered if they have written nothing, the log has its
// status, and a 500 is refunded.
func TestErrorHandler(t *testing.T) {
	gone := apierror.New(http.StatusGone, "pet_sold", "This pet was sold.")
	var log contract.Log
	router := gin.New()
	router.Use(gatehousegin.Wrap(middleware.AccessLog(log.Logger()), contract.Limiter(t, limit.Options{ChargeIf: limit.NotServerError})),
		gatehousegin.ErrorHandler(contract.Errors))
	router.GET("/none", func(*gin.Context) {})
	router.GET("/secret", func(c *gin.Context) { _ = c.Error(errors.New("secret")) })
	router.GET("/gone", func(c *gin.Context) { _ = c.Error(errors.New("first")); _ = c.Error(gone) })
	router.GET("/own", func(c *gin.Context) { c.String(418, "own"); _ = c.Error(gone) })
	send := contract.Serve(t, router)
	for _, test := range []struct {
		path      string
		status    int
		body      string
		remaining string
	}{
		{"/none", 200, "", "2"},
		{"/secret", 500, `"code":"internal"`, "1"},
		{"/gone", 410, `"code":"pet_sold"`, "1"},
		{"/own", 418, "own", "0"},
	} {
		got := send("GET", test.path, "")
		if got.Status != test.status || !strings.Contains(got.Body, test.body) || strings.Contains(got.Body, "secret") {
			t.Errorf("%s: %d %s, want %d %s", test.path, got.Status, got.Body, test.status, test.body)
		}
		if got.Remaining() != test.remaining {
			t.Errorf("%s: %s left, want %s", test.path, got.Remaining(), test.remaining)
		}
		if line := log.Line(t); line.Status != test.status || line.Bytes != len(got.Body) {
			t.Errorf("%s: the log has %+v, want status %d and %d bytes", test.path, line, test.status, len(got.Body))
		}
	}
}

// AbortWithError has begun the response: the comment of ErrorHandler says so.
func TestErrorHandlerAfterAbort(t *testing.T) {
	router := gin.New()
	router.Use(gatehousegin.Wrap(contract.Errors.Recover), gatehousegin.ErrorHandler(contract.Errors))
	router.GET("/", func(c *gin.Context) { _ = c.AbortWithError(400, errors.New("no")) })
	if got := contract.Serve(t, router)("GET", "/", ""); got.Status != 400 || got.Body != "" {
		t.Errorf("got %d %q, want 400 without a body", got.Status, got.Body)
	}
}

// An error that a handler around ErrorHandler has added, to log it, is not answered.
func TestErrorHandlerLeavesEarlierErrors(t *testing.T) {
	router := gin.New()
	router.Use(func(c *gin.Context) { _ = c.Error(errors.New("a warning for the log")) }, gatehousegin.ErrorHandler(contract.Errors))
	router.DELETE("/", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	if got := contract.Serve(t, router)("DELETE", "/", ""); got.Status != 204 || got.Body != "" {
		t.Errorf("got %d %q, want 204 without a body", got.Status, got.Body)
	}
}
