package telemetry

import "net/http"

// Panics is a middleware that counts panics, and passes them on. Place it directly
// inside the middleware that recovers. A panic with [http.ErrAbortHandler] aborts a
// response on purpose and is not counted.
func (t *Telemetry) Panics(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v != http.ErrAbortHandler {
				t.panics.n.Add(1)
			}
			panic(v) // with the stack of the first panic, which has not been unwound yet
		}()
		next.ServeHTTP(w, r)
	})
}
