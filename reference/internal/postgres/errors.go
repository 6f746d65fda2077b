package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var (
	errClosed   = fmt.Errorf("%w: closed", store.ErrUnavailable)
	errReadOnly = fmt.Errorf("%w: the server is read-only, such as a standby", store.ErrUnavailable)
	errTooOld   = fmt.Errorf("%w: a newer version of this program changed the schema; use the newer version", store.ErrUnavailable)
)

// A connectError: a call has no connection, so it has not begun.
type connectError struct {
	err error
	all bool // all connections of the pool are in use
}

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// An unknownError: the server did not say whether it has stored something, or a failover
// could lose what it has stored.
type unknownError struct{ err error }

func (e *unknownError) Error() string {
	if errors.Is(e.err, errUnconfirmed) {
		return "the outcome is unknown: " + e.err.Error()
	}
	return "the outcome is unknown, because the server did not report it: " + e.err.Error()
}
func (e *unknownError) Unwrap() error { return e.err }

// IsUnknown reports whether err says that the server may have stored what it was given, and
// did not say so.
func IsUnknown(err error) bool {
	_, unknown := errors.AsType[*unknownError](err)
	return unknown
}

// isLost reports whether err is the loss of a connection, or the announcement of one, as is
// an error without a code, after which nothing can be read.
func isLost(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "" || isFatal(e) || strings.HasPrefix(e.Code, "08")
	}
	for _, lost := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, driver.ErrBadConn, sql.ErrConnDone} {
		if errors.Is(err, lost) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network) || pgconn.SafeToRetry(err)
}

// isStale reports whether the other connections are likely to fail as well.
func isStale(err error) bool {
	return state(err) == readOnlyTransaction || errors.Is(err, errReadOnly) || isLost(err) && !pgconn.Timeout(err)
}

// wrap adds to the error of a call what the call was doing, and why it failed.
func (s *Store) wrap(doing string, err error) error {
	switch {
	case errors.Is(err, pgx.ErrNoRows), state(err) == notInRepertoire: // no stored text has NUL or is not UTF-8
		return fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	case s.closed.Load() && errors.Is(err, puddle.ErrClosedPool):
		return fmt.Errorf("%s: %w", doing, errClosed)
	case isOwn(err):
		return fmt.Errorf("%s: %w", doing, err)
	}
	if reason := s.unavailable(err); reason != "" {
		return fmt.Errorf("%s: %w: %s: %s: %w", doing, store.ErrUnavailable, s.name, reason, oneLine{err})
	}
	return fmt.Errorf("%s: %s: %w", doing, s.name, oneLine{explain(err)})
}

// isOwn reports whether err is not about PostgreSQL.
func isOwn(err error) bool {
	for _, own := range []error{
		store.ErrNotFound, store.ErrInvalid, store.ErrExists, store.ErrInactive, store.ErrMismatch,
		store.ErrCondition, store.ErrUnavailable, context.Canceled,
	} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// unavailable returns why a call failed that can succeed later, or "".
func (s *Store) unavailable(err error) string {
	if connect, ok := errors.AsType[*connectError](err); ok {
		if connect.all && errors.Is(err, context.DeadlineExceeded) {
			return fmt.Sprintf("all %d connections are in use; raise pool_max_conns", s.pool.Stat().MaxConns())
		}
		if reason := stateReason(err); reason != "" {
			return reason
		}
		return "cannot connect"
	}
	if reason := cmp.Or(stateReason(err), networkReason(err)); reason != "" {
		return reason
	}
	if IsUnknown(err) {
		if errors.Is(err, errUnconfirmed) {
			return "its standby has not confirmed the commit"
		}
		return "its answer cannot be read"
	}
	return ""
}

// networkReason returns why the server did not answer, or "" if it did.
func networkReason(err error) string {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return "cannot connect"
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return "no answer in time"
	case isLost(err):
		return "the connection was lost"
	}
	return ""
}

// advice has what an operator can do about an error that does not pass, by its code.
var advice = map[string]string{
	"28P01":               "check the user and the password",
	"28000":               "check the user and the password",
	"3D000":               "create the database first",
	insufficientPrivilege: "grant the user the rights on the tables and their schema",
	"26000":               "a pooler gives statements to several connections; add default_query_exec_mode=exec to the URL",
	"42P05":               "a pooler gives statements to several connections; add default_query_exec_mode=exec to the URL",
	"42P01":               "the tables are not those of this program; check the search_path, or run petstore migrate",
	"42703":               "the tables are not those of this program; check the search_path, or run petstore migrate",
}

// explain adds to an error that does not pass what an operator can do.
func explain(err error) error {
	if what, ok := advice[state(err)]; ok {
		return fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// oneLine is an error without line breaks. That of several servers has one for each.
type oneLine struct{ error }

func (e oneLine) Error() string {
	return strings.Join(strings.FieldsFunc(e.error.Error(), func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}
func (e oneLine) Unwrap() error { return e.error }

// explainOpen is for the opening of a database: what an operator must mend is not
// [store.ErrUnavailable] then.
func explainOpen(doing string, err error) error {
	reason := stateReason(err)
	if reason == "" && state(err) == "" {
		reason = networkReason(err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	case reason != "":
		return fmt.Errorf("%s: %w: %s: %w", doing, store.ErrUnavailable, reason, oneLine{err})
	}
	return fmt.Errorf("%s: %w", doing, oneLine{explain(err)})
}

// The error codes that calls depend on; PostgreSQL, appendix A.
const (
	notInRepertoire       = "22021"
	readOnlyTransaction   = "25006"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	insufficientPrivilege = "42501"
	tooManyConnections    = "53300"
	idleSessionTimeout    = "57P05"
)

// state returns the error code of the server, or "".
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isFatal reports whether the server has ended the session, whatever its reason.
func isFatal(err *pgconn.PgError) bool {
	// PgBouncer has only the one that PostgreSQL translates.
	severity := cmp.Or(err.SeverityUnlocalized, err.Severity)
	return severity == "FATAL" || severity == "PANIC"
}

// passing has what an error that can pass means, by its code or class.
var passing = map[string]string{
	tooManyConnections:   "it has too many connections; lower pool_max_conns or raise its max_connections",
	"53100":              "its disk is full",
	"53200":              "it is out of memory",
	readOnlyTransaction:  "it is read-only, such as a standby",
	serializationFailure: "others lock what the call needs",
	deadlockDetected:     "others lock what the call needs",
	"55P03":              "others lock what the call needs",
	"57014":              "it canceled the statement",
	"57P01":              "it is stopping or starting",
	"57P02":              "it is stopping or starting",
	"57P03":              "it is stopping or starting",
	"53":                 "it cannot answer now",
	"57":                 "it cannot answer now",
	"58":                 "it cannot answer now",
}

// stateReason returns what an error code that can pass means, or "".
func stateReason(err error) string {
	if isPoolerRefusal(err) {
		return "its pooler has no connection for the call"
	}
	code := state(err)
	return cmp.Or(passing[code], passing[code[:min(2, len(code))]])
}

// isPoolerRefusal reports whether err is of PgBouncer, which answers so while it cannot
// reach the server or has too many clients. It has the same code for mistakes of the URL.
func isPoolerRefusal(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !isFatal(e) || !strings.HasPrefix(e.Code, "08") {
		return false
	}
	for _, mistake := range []string{"unsupported startup parameter", "no such database", "no such user", "bouncer config error"} {
		if strings.HasPrefix(e.Message, mistake) {
			return false
		}
	}
	return true
}
