package gatehousegin_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/middleware"
)

// In Wrap the ResponseWriter of the handlers tells what that of Gin tells.
func TestStateOfTheWriter(t *testing.T) {
	type state struct {
		Status, Size     int
		Written, Aborted bool
	}
	steps := []func(*gin.Context){
		func(c *gin.Context) { c.Status(202) },
		func(c *gin.Context) { c.Writer.WriteHeaderNow() },
		func(c *gin.Context) { c.Writer.WriteHeaderNow() },
		func(c *gin.Context) { c.Writer.WriteHeader(-1) },
		func(c *gin.Context) { _, _ = c.Writer.WriteString("pets") },
		func(c *gin.Context) { c.Writer.WriteHeaderNow() },
		func(c *gin.Context) { _, _ = c.Writer.Write([]byte("!")) },
		func(c *gin.Context) { c.Writer.Flush() },
	}
	observe := func(m ...gin.HandlerFunc) (states []state) {
		router := gin.New()
		note := func(c *gin.Context) {
			states = append(states, state{c.Writer.Status(), c.Writer.Size(), c.Writer.Written(), c.IsAborted()})
		}
		router.Use(func(c *gin.Context) {
			c.Next()
			note(c)
		})
		router.Use(m...)
		router.GET("/", func(c *gin.Context) {
			note(c)
			for _, step := range steps {
				step(c)
				note(c)
			}
		})
		if got := serve(t, router)("GET", "/", ""); got.status != 202 || got.body != "pets!" {
			t.Errorf("the client gets %d %q, want 202 pets!", got.status, got.body)
		}
		return states
	}
	want, got := observe(), observe(gatehousegin.Wrap(middleware.RequestID))
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("after step %d of the handler: %+v, without Wrap %+v", i, got[i], want[i])
		}
	}
}

// A middleware that calls the handlers only after it has returned does not reach them: Gin
// uses the Context for another request.
func TestCalledTooLate(t *testing.T) {
	release, done := make(chan struct{}), make(chan struct{})
	router := gin.New()
	router.Use(gatehousegin.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			go func() {
				defer close(done)
				<-release
				next.ServeHTTP(w, r)
			}()
			w.WriteHeader(202)
		})
	}))
	router.GET("/", func(*gin.Context) { t.Error("the handler is called after the response") })
	if got := serve(t, router)("GET", "/", ""); got.status != 202 {
		t.Errorf("status %d, want 202", got.status)
	}
	close(release)
	<-done
}

// A middleware that replaces the context is a mistake that is named.
func TestReplacedContext(t *testing.T) {
	var recovered any
	router := gin.New()
	router.Use(gatehousegin.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { recovered = recover() }()
			next.ServeHTTP(w, r.WithContext(t.Context()))
		})
	}))
	router.GET("/", func(*gin.Context) { t.Error("called") })
	serve(t, router)("GET", "/", "")
	if recovered != "gatehousegin: a middleware has replaced the context of the request; it must derive one from it" {
		t.Errorf("recovered %v", recovered)
	}
}
