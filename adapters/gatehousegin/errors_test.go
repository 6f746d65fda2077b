package gatehousegin_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// The last error of the handlers is answered if they have written nothing, the log has its
// status, and a 500 is refunded.
func TestErrorHandler(t *testing.T) {
	gone := apierror.New(http.StatusGone, "pet_sold", "This pet was sold.")
	var log logbook
	router := gin.New()
	router.Use(gatehousegin.Wrap(middleware.AccessLog(log.logger()), limiter(t, limit.Options{ChargeIf: limit.NotServerError})),
		gatehousegin.ErrorHandler(errs))
	router.GET("/none", func(*gin.Context) {})
	router.GET("/secret", func(c *gin.Context) { _ = c.Error(errors.New("secret")) })
	router.GET("/gone", func(c *gin.Context) { _ = c.Error(errors.New("first")); _ = c.Error(gone) })
	router.GET("/own", func(c *gin.Context) { c.String(418, "own"); _ = c.Error(gone) })
	send := serve(t, router)
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
		if got.status != test.status || !strings.Contains(got.body, test.body) || strings.Contains(got.body, "secret") {
			t.Errorf("%s: %d %s, want %d %s", test.path, got.status, got.body, test.status, test.body)
		}
		if got.remaining() != test.remaining {
			t.Errorf("%s: %s left, want %s", test.path, got.remaining(), test.remaining)
		}
		if line := log.line(t); line.Status != test.status || line.Bytes != len(got.body) {
			t.Errorf("%s: the log has %+v, want status %d and %d bytes", test.path, line, test.status, len(got.body))
		}
	}
}

// AbortWithError has begun the response: the comment of ErrorHandler says so.
func TestErrorHandlerAfterAbort(t *testing.T) {
	router := gin.New()
	router.Use(gatehousegin.Wrap(middleware.Recover(errs)), gatehousegin.ErrorHandler(errs))
	router.GET("/", func(c *gin.Context) { _ = c.AbortWithError(400, errors.New("no")) })
	if got := serve(t, router)("GET", "/", ""); got.status != 400 || got.body != "" {
		t.Errorf("got %d %q, want 400 without a body", got.status, got.body)
	}
}

// An error that a handler around ErrorHandler has added, to log it, is not answered.
func TestErrorHandlerLeavesEarlierErrors(t *testing.T) {
	router := gin.New()
	router.Use(func(c *gin.Context) { _ = c.Error(errors.New("a warning for the log")) }, gatehousegin.ErrorHandler(errs))
	router.DELETE("/", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	if got := serve(t, router)("DELETE", "/", ""); got.status != 204 || got.body != "" {
		t.Errorf("got %d %q, want 204 without a body", got.status, got.body)
	}
}
