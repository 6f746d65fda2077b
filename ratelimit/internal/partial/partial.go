// Package partial has the error by which an engine on several servers tells package
// failover that not all of it is away.
package partial

import "errors"

// ErrOutage says that the server with the subject does not answer, while the others may.
var ErrOutage = errors.New("the server with the subject does not answer")
