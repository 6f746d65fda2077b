package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// ErrUnknown: the server may have stored what it was given, and did not say so, or a failover
// could lose what it has stored.
var ErrUnknown = errors.New("the outcome is unknown")

// Temporary errors, in addition to the codes of PostgreSQL; see isTemporary.
var (
	errNoConnection = errors.New("cannot connect")
	errLost         = errors.New("the connection was lost")
	errReadOnly     = errors.New("the server is read-only, such as a standby")
	errTooOld       = errors.New("a newer version of this program changed the schema; use the newer version")
	errNoRights     = errors.New(needsOwner)
)

const needsOwner = "the user of the database lacks rights on its tables; to migrate or import, use the owner of the tables"

// The error codes that calls depend on; PostgreSQL, appendix A.
const (
	planChanged          = "0A000" // cached plan must not change result type
	notInRepertoire      = "22021"
	readOnlyTransaction  = "25006"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// advice has what an operator can do about an error, by its code.
var advice = map[string]string{
	"26000": "a pooler gives statements to several connections; add default_query_exec_mode=exec to the URL",
	"42P05": "a pooler gives statements to several connections; add default_query_exec_mode=exec to the URL",
	"42501": needsOwner,
	"42703": "the tables are not those of this program; check the search_path, or run petstore migrate",
	"42P01": "the tables are not those of this program; check the search_path, or run petstore migrate",
	"53300": "lower pool_max_conns, or raise max_connections of PostgreSQL",
}

// state returns the error code of the server, or "".
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isStale reports whether the other connections are likely to give the same answer, and new
// ones are not.
func isStale(err error) bool {
	return state(err) == readOnlyTransaction || state(err) == planChanged || errors.Is(err, errReadOnly)
}

// canRepeat reports whether the same call can succeed after an answer of the server that
// stored nothing.
func canRepeat(err error) bool {
	return isStale(err) || state(err) == serializationFailure || state(err) == deadlockDetected
}

// isTemporary reports whether a later call can succeed.
func isTemporary(err error) bool {
	for _, reason := range []error{errNoConnection, errLost, ErrUnknown, errReadOnly, errTooOld, errNoRights, puddle.ErrClosedPool} {
		if errors.Is(err, reason) {
			return true
		}
	}
	// Connections, state of the transaction, rollback, resources, prerequisites, operators, system.
	code := state(err)
	return code != "" && slices.Contains([]string{"08", "25", "40", "53", "55", "57", "58"}, code[:min(2, len(code))])
}

// explain returns the error of a call with what the call was doing.
func (s *Store) explain(doing string, err error) error {
	if state(err) == notInRepertoire { // every stored text is UTF-8 without NUL
		return fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	return explain(doing+": "+s.name, err)
}

// explain returns an error that says what failed and what an operator can do. It wraps
// [store.ErrUnavailable] if it is temporary.
func explain(what string, err error) error {
	temporary := isTemporary(err)
	if do, ok := advice[state(err)]; ok {
		err = fmt.Errorf("%s: %w", do, err)
	}
	if temporary {
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, oneLine{err})
	}
	return fmt.Errorf("%s: %w", what, oneLine{err})
}

// oneLine is an error without line breaks. The error about several servers has a line for each.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }
func (e oneLine) Unwrap() error { return e.error }
