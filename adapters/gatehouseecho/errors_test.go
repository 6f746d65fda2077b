package gatehouseecho_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	echomiddleware "github.com/labstack/echo/v5/middleware"

	"github.com/animalstore/gatehouse/adapters/gatehouseecho"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
	"github.com/animalstore/gatehouse/apierror"
)

// After a recovered panic a logger of Echo sees a 500.
func TestLoggerOfEchoAfterAPanic(t *testing.T) {
	seen := -1
	e := echo.New()
	e.Use(echomiddleware.RequestLoggerWithConfig(echomiddleware.RequestLoggerConfig{
		LogStatus: true,
		LogValuesFunc: func(_ *echo.Context, v echomiddleware.RequestLoggerValues) error {
			seen = v.Status
			return nil
		},
	}), gatehouseecho.Wrap(contract.Errors.Recover))
	e.GET("/", func(*echo.Context) error { panic("no") })
	if got := contract.Serve(t, e)("GET", "/", ""); seen != 500 || got.Code() != "internal" {
		t.Errorf("a logger of Echo sees %d after a panic, which is answered with %d %q; want 500", seen, got.Status, got.Body)
	}
}

func TestErrorHandler(t *testing.T) {
	noPet := apierror.New(404, "pet_not_found", "There is no pet with this identifier.")
	for _, test := range []struct {
		err  error
		want string
	}{
		{noPet, `{"code":"pet_not_found","message":"There is no pet with this identifier.","status":404}`},
		{fmt.Errorf("wrapped: %w", noPet), `{"code":"pet_not_found","message":"There is no pet with this identifier.","status":404}`},
		{errors.New("secret"), `{"code":"internal","message":"The service failed to answer this request.","status":500}`},
		{echo.NewHTTPError(403, "Not yours."), `{"code":"forbidden","message":"Not yours.","status":403}`},
		{echo.NewHTTPError(403, "Not yours.").Wrap(errors.New("secret")), `{"code":"forbidden","message":"Not yours.","status":403}`},
		{echo.NewHTTPError(400, "No number."), `{"code":"bad_request","message":"No number.","status":400}`},
		{echo.NewHTTPError(599, "Odd."), `{"code":"error","message":"Odd.","status":599}`},
		{echo.ErrUnsupportedMediaType, `{"code":"unsupported_media_type","message":"Unsupported Media Type","status":415}`},
		{echo.ErrStatusRequestEntityTooLarge, `{"code":"body_too_large","message":"Request Entity Too Large","status":413}`},
		{echo.ErrTooManyRequests, `{"code":"rate_limit_exceeded","message":"Too Many Requests","status":429}`},
		{echo.NewHTTPError(http.StatusRequestURITooLong, ""), `{"code":"uri_too_long","message":"Request URI Too Long","status":414}`},
		{echo.NewHTTPError(418, "Tea."), `{"code":"im_a_teapot","message":"Tea.","status":418}`},
		{echo.NewHTTPError(499, "Gone."), `{"code":"error","message":"Gone.","status":499}`},
		{echo.ErrInternalServerError, `{"code":"internal","message":"Internal Server Error","status":500}`},
		{echo.ErrServiceUnavailable, `{"code":"unavailable","message":"Service Unavailable","status":503}`},
		{echo.NewHTTPError(302, "Found."), `{"code":"internal","message":"The service failed to answer this request.","status":500}`},
	} {
		e := echo.New()
		e.HTTPErrorHandler = gatehouseecho.ErrorHandler(contract.Errors)
		e.GET("/", func(*echo.Context) error { return test.err })
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if got := w.Body.String(); got != test.want+"\n" {
			t.Errorf("%v:\n got %s\nwant %s", test.err, got, test.want)
		}
	}
}

func TestUnmatched(t *testing.T) {
	e := echo.New()
	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(nil)
	e.GET("/pets", ok)
	e.POST("/pets", ok)
	for _, test := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nowhere", 404, ""},
		{"DELETE", "/pets", 405, "OPTIONS, GET, POST"},
	} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		if w.Code != test.status || w.Header().Get("Allow") != test.allow || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %d with %v, want %d with Allow %q in the envelope", test.method, test.path, w.Code, w.Header(), test.status, test.allow)
		}
	}
}

// An error that is not public, also one that an error of Echo wraps, is for the log alone.
func TestCausesAreLogged(t *testing.T) {
	secret := errors.New("secret")
	for body, err := range map[string]error{
		`{"code":"internal","message":"The service failed to answer this request.","status":500}`: secret,
		`{"code":"unavailable","message":"Later.","status":503}`:                                  echo.NewHTTPError(503, "Later.").Wrap(secret),
	} {
		var log contract.Log
		e := echo.New()
		e.HTTPErrorHandler = gatehouseecho.ErrorHandler(&apierror.Responder{Logger: log.Logger()})
		e.GET("/", func(*echo.Context) error { return err })
		if got := contract.Serve(t, e)("GET", "/", ""); got.Body != body+"\n" || !strings.Contains(log.String(), "secret") {
			t.Errorf("got %s and the log %s, want %s and the cause in the log", got.Body, log.String(), body)
		}
	}
}

// Nothing is written to a connection that belongs to the handler.
func TestErrorAfterHijack(t *testing.T) {
	e := echo.New()
	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(contract.Errors)
	e.Use(gatehouseecho.Wrap())
	e.GET("/", func(c *echo.Context) error {
		if _, _, err := http.NewResponseController(c.Response()).Hijack(); err != nil {
			return err
		}
		return errors.New("the other side is gone")
	})
	w := httptest.NewRecorder()
	e.ServeHTTP(hijackable{w}, httptest.NewRequest("GET", "/", nil))
	if w.Body.Len() > 0 || len(w.Header()) > 0 {
		t.Errorf("the error is written after Hijack: %v %s", w.Header(), w.Body)
	}
}

type hijackable struct{ http.ResponseWriter }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }
