// Package store defines what the service stores: pets, API keys, the audit log, requests
// by day and the use of deprecated operations. Packages sqlite and postgres implement it.
// The suite in storetest tests implementations.
//
// The interfaces are small, so that a consumer requires only what it uses:
//
//	func NewListPets(pets store.Pets) http.Handler
//
// Every implementation promises:
//
//   - A write that returned nil is durable: it survives a crash of the process
//     and of the machine.
//   - A write that returned an error has stored nothing, with one exception: if the
//     commit fails, its outcome can be unknown. Such an error wraps [ErrUnavailable].
//   - A write is visible to every handle on the same database, in this process and in
//     others. Nothing is cached.
//   - All methods are safe for concurrent use, until Close.
//   - When its context ends, a call returns the error of the context. A write that has
//     begun finishes first, so that its outcome is known.
//   - Times are stored in microseconds and UTC; anything finer is cut off.
//
// Errors wrap [ErrNotFound], [ErrInvalid], [ErrExists], [ErrInactive], [ErrMismatch]
// or [ErrUnavailable], so that callers can branch. They contain no secrets.
//
// A [Saver] saves what a server keeps in memory: the usage of the embedded rate limiter, a
// [DailyCounter] and a [DeprecatedCounter]. A process that is killed loses what happened
// since the last save: about one second of usage, and ten seconds of the requests by
// day, as long as they can be written.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
)

// A Store is a whole database. The state of an embedded limiter is not part of it.
type Store interface {
	Pets
	Keys
	Audits
	DailyUses
	DeprecatedUses

	// Ping returns an error if the database cannot be used now.
	Ping(ctx context.Context) error

	// Closer waits for running writes and closes the database. Later calls fail with
	// [ErrUnavailable]. A second Close does nothing.
	io.Closer
}

// Errors that callers branch on. They are wrapped with what the call was doing.
var (
	// ErrNotFound: there is no such pet or key.
	ErrNotFound = sqlkeys.ErrNotFound

	// ErrInvalid: the value breaks a rule of its type.
	ErrInvalid = sqlkeys.ErrInvalid

	// ErrExists: there is a key with this digest, or, for CreateFirstKey, any key.
	ErrExists = sqlkeys.ErrExists

	// ErrInactive: the key is revoked or has expired.
	ErrInactive = sqlkeys.ErrInactive

	// ErrMismatch: the idempotency key was used for another request.
	ErrMismatch = errors.New("used for another request")

	// ErrUnavailable: the database is locked, full, unreadable or closed. A later
	// call can succeed.
	ErrUnavailable = errors.New("database unavailable")
)

// MaxText is the largest number of code points in a name or an owner.
const MaxText = 255

// CheckText returns an error if text cannot be a name or an owner. The error continues
// a sentence that begins with what the text is.
func CheckText(text string) error {
	switch n := utf8.RuneCountInString(text); {
	case text == "":
		return fmt.Errorf("must have 1 to %d characters, got none", MaxText)
	case n > MaxText:
		return fmt.Errorf("must have 1 to %d characters, got %d", MaxText, n)
	case !utf8.ValidString(text):
		return fmt.Errorf("must be UTF-8, got %q", text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("must not have control characters, got %q", text)
	}
	return nil
}

// CheckTime returns an error if t is not in the years 1 to 9999 of UTC: RFC 3339, in which
// clients read times, has no others, and a database can silently change them. The error
// continues a sentence that begins with what the time is.
func CheckTime(t time.Time) error {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("must be in the years 1 to 9999, got the year %d", year)
	}
	return nil
}

func checkText(what, text string) error {
	if err := CheckText(text); err != nil {
		return fmt.Errorf("%w: %s %w", ErrInvalid, what, err)
	}
	return nil
}

// checkTime also refuses the zero time.
func checkTime(what string, t time.Time) error {
	if t.IsZero() {
		return fmt.Errorf("%w: %s is missing", ErrInvalid, what)
	}
	if err := CheckTime(t); err != nil {
		return fmt.Errorf("%w: %s %w", ErrInvalid, what, err)
	}
	return nil
}

// An Export is everything in a database as of one instant, to be copied to another.
type Export struct {
	From   string  // the file that it comes from, for the audit log; as in AuditEntry.Target
	Tables []Table // in an order in which rows refer to those of earlier tables only
}

// A Table is a table of an [Export].
type Table struct {
	Name    string
	Columns []string
	LastID  int64 // the largest ID that a row ever had; 0: there was none, or IDs are not numbers

	// Rows has the values of the columns, each an int64, a string, a []byte, a []string, a
	// time.Time or nil. It can be read once, and reads the database meanwhile. After an error
	// there are no more rows.
	Rows iter.Seq2[[]any, error]
}
