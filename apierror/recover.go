package apierror

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"

	"github.com/animalstore/gatehouse/internal/response"
)

// maxStack bounds the stack that is logged, as net/http does.
const maxStack = 64 << 10

// Recover returns a handler that answers 500 in the envelope if next panics
// before its response has begun. Header fields set until then, such as
// X-RateLimit-Limit, are kept. If the response has begun, it is aborted by
// panicking with [http.ErrAbortHandler], for the reason given at
// [Responder.Handle]. Either way the panic is logged with its stack. A panic
// with ErrAbortHandler itself is passed on, unlogged. Like [Responder.Handle] it
// removes the temporary files of multipart forms.
//
// The log has the request's ID only if Recover is inside the middleware that
// assigns it. It has the route unless a middleware of another module between Recover
// and the [http.ServeMux] copies the request, as [http.Request.WithContext] does. A
// second Recover directly around the mux then logs the panic with the route, and the
// outer one answers for the middlewares between them.
func (rs *Responder) Recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, form := response.Track(w), r.MultipartForm
		defer func() {
			v := recover()
			response.RemoveFiles(r, form)
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			stack := make([]byte, maxStack)
			stack = stack[:runtime.Stack(stack, false)]
			rs.log(r, slog.LevelError, "handler panicked",
				slog.Bool("aborted", t.Begun()), slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(stack)))
			if t.Begun() {
				panic(http.ErrAbortHandler)
			}
			send(t, r, internal)
		}()
		next.ServeHTTP(t, r)
	})
}
