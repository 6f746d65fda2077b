package postgres

import (
	"cmp"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The error codes that this package knows; PostgreSQL, appendix A.
const (
	notInRepertoire       = "22021"
	uniqueViolation       = "23505"
	readOnlyTransaction   = "25006"
	noSuchStatement       = "26000"
	invalidAuthorization  = "28000"
	invalidPassword       = "28P01"
	invalidCatalogName    = "3D000"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	insufficientPrivilege = "42501"
	undefinedColumn       = "42703"
	undefinedTable        = "42P01"
	duplicateStatement    = "42P05"
	diskFull              = "53100"
	outOfMemory           = "53200"
	tooManyConnections    = "53300"
	lockNotAvailable      = "55P03"
	queryCanceled         = "57014"
	adminShutdown         = "57P01"
	crashShutdown         = "57P02"
	cannotConnectNow      = "57P03"
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

// isDuplicate reports whether err is about a value that exists already.
func isDuplicate(err error) bool { return state(err) == uniqueViolation }

// stateReason returns what an error code that can pass means, or "".
func stateReason(err error) string {
	switch s := state(err); s {
	case tooManyConnections:
		return "it has too many connections; lower pool_max_conns or raise its max_connections"
	case diskFull:
		return "its disk is full"
	case outOfMemory:
		return "it is out of memory"
	case readOnlyTransaction:
		return "it is read-only, such as a standby"
	case serializationFailure, deadlockDetected, lockNotAvailable:
		return "others lock what the call needs"
	case queryCanceled:
		return "it canceled the statement"
	case adminShutdown, crashShutdown, cannotConnectNow:
		return "it is stopping or starting"
	default:
		if isPoolerRefusal(err) {
			return "its pooler has no connection for the call"
		}
		if strings.HasPrefix(s, "53") || strings.HasPrefix(s, "57") || strings.HasPrefix(s, "58") {
			return "it cannot answer now"
		}
	}
	return ""
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
