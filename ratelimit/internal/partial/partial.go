// Package partial has the error by which an engine tells package failover that it fails for
// some subjects only.
package partial

import "errors"

// ErrOutage says that other subjects may be decided: those of another server.
var ErrOutage = errors.New("other subjects may be decided")
