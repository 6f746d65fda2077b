package gatehouseecho_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/animalstore/gatehouse/adapters/gatehouseecho"
)

// A middleware that calls the handlers only after it has returned does not reach them: Echo
// uses the Context for another request.
func TestCalledTooLate(t *testing.T) {
	release, done := make(chan struct{}), make(chan struct{})
	e := echo.New()
	e.Use(gatehouseecho.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			go func() {
				defer close(done)
				<-release
				next.ServeHTTP(w, r)
			}()
			w.WriteHeader(202)
		})
	}))
	e.GET("/", func(*echo.Context) error {
		t.Error("the handler is called after the response")
		return nil
	})
	if got := serve(t, e)("GET", "/", ""); got.status != 202 {
		t.Errorf("status %d, want 202", got.status)
	}
	close(release)
	<-done
}

// A middleware that replaces the context is a mistake that is named.
func TestReplacedContext(t *testing.T) {
	var recovered any
	e := echo.New()
	e.Use(gatehouseecho.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { recovered = recover() }()
			next.ServeHTTP(w, r.WithContext(t.Context()))
		})
	}))
	e.GET("/", func(*echo.Context) error { t.Error("called"); return nil })
	serve(t, e)("GET", "/", "")
	if recovered != "gatehouseecho: a middleware has replaced the context of the request; it must derive one from it" {
		t.Errorf("recovered %v", recovered)
	}
}
