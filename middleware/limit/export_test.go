package limit

import (
	"net/http"
	"time"
)

// ForgetMade makes the next limit the first one of the process.
func ForgetMade() { made.Store(0) }

// SetDisconnectWait changes how long a handler made by New waits for net/http to
// notice that the client is gone.
func SetDisconnectWait(h http.Handler, d time.Duration) { h.(*limitHandler).disconnectWait = d }
