package ratelimit

import (
	"net/http"
	"time"
)

// SetHangUpWait changes how long a handler made by New waits for net/http to
// notice that the client is gone.
func SetHangUpWait(h http.Handler, d time.Duration) { h.(*gate).hangUpWait = d }
