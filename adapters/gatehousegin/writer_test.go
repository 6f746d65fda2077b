package gatehousegin_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/adapters/internal/contract"
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
		func(c *gin.Context) { c.Status(500) },
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
		if got := contract.Serve(t, router)("GET", "/", ""); got.Status != 202 || got.Body != "pets!" {
			t.Errorf("the client gets %d %q, want 202 pets!", got.Status, got.Body)
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

// A connection can be hijacked until a part of the body is written.
type buffer struct {
	http.ResponseWriter
	written []byte
}

func (b *buffer) Write(p []byte) (int, error) {
	b.written = append(b.written, p...)
	return len(p), nil
}

func (b *buffer) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func TestHijack(t *testing.T) {
	router := gin.New()
	router.Use(gatehousegin.Wrap(middleware.RequestID))
	router.GET("/", func(c *gin.Context) {
		conn, _, err := c.Writer.Hijack()
		if err != nil || !c.Writer.Written() {
			t.Errorf("Hijack: %v, and the response has begun: %t", err, c.Writer.Written())
			return
		}
		_ = conn.Close()
	})
	// A middleware that compresses or caches has what was written.
	buffering := gatehousegin.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b := &buffer{ResponseWriter: w}
			next.ServeHTTP(b, r)
			_, _ = w.Write(b.written)
		})
	})
	router.GET("/late", buffering, func(c *gin.Context) {
		c.String(200, "body")
		if conn, _, err := c.Writer.Hijack(); err == nil {
			_ = conn.Close()
			t.Error("a connection is hijacked in the middle of a body")
		}
	})
	contract.Exchange(t, router, "GET / HTTP/1.1\r\nHost: pets\r\n\r\n")
	if got := contract.Serve(t, router)("GET", "/late", ""); got.Body != "body" {
		t.Errorf("got %q", got.Body)
	}
}
