package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A Store is a whole database. The state of an embedded limiter is not part of it: see
// [Usage].
type Store interface {
	Pets
	Keys
	Audits
	DailyUses
	DeprecatedUses

	// Ping returns an error if the database cannot be used now.
	Ping(ctx context.Context) error

	// Closer waits for running writes and closes the database. Later calls fail with
	// [ErrUnavailable].
	io.Closer
}

// Errors that callers branch on. They are wrapped with what the call was doing.
var (
	// ErrNotFound: there is no such pet or key.
	ErrNotFound = errors.New("not found")

	// ErrInvalid: the value breaks a rule of its type.
	ErrInvalid = errors.New("invalid")

	// ErrExists: a key with this digest exists, or the first key does.
	ErrExists = errors.New("exists already")

	// ErrInactive: the key is revoked or has expired.
	ErrInactive = errors.New("revoked or expired")

	// ErrMismatch: the idempotency key was used for another request.
	ErrMismatch = errors.New("used for another request")

	// ErrCondition: the condition of a write is false.
	ErrCondition = errors.New("condition is false")

	// ErrUnavailable: the database is locked, full, unreadable or closed. A later
	// call can succeed.
	ErrUnavailable = errors.New("database unavailable")
)

// CheckTime returns an error if t is not in the years 1 to 9999 of UTC: RFC 3339, in which
// clients read times, has no others, and a database can silently change them. The error
// continues a sentence that begins with what the time is.
func CheckTime(t time.Time) error {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("must be in the years 1 to 9999, got the year %d", year)
	}
	return nil
}

func checkTime(what string, t time.Time) error {
	if err := CheckTime(t); err != nil {
		return fmt.Errorf("%w: %s %w", ErrInvalid, what, err)
	}
	return nil
}

// A PetsVersioner is a [Pets] that knows cheaply whether pets may have changed, so that
// a caller can keep what it made of them. It is optional.
type PetsVersioner interface {
	// PetsVersion returns a number that stands for what is stored. Two calls return the
	// same number only if no process has committed a write between them: whatever was
	// read after the first call is what would be read after the second one. The number
	// may change without a write, and is neither ordered nor stored. It costs far less
	// than a query.
	//
	// If ok is false, the store cannot tell at the moment, and the caller must read.
	PetsVersion() (version uint64, ok bool)
}

// An Export is everything in a database as of one instant, to be copied to another. Its
// sequences can be read once, and read the database while they are iterated. After an
// error a sequence has no more rows.
type Export struct {
	From string // the file that it comes from, for the audit log; as in AuditEntry.Target

	Pets               iter.Seq2[Pet, error] // by ID
	Keys               iter.Seq2[Key, error]
	Audit              iter.Seq2[AuditEntry, error] // by ID
	DailyUse           iter.Seq2[DailyUse, error]
	DeprecatedUse      iter.Seq2[DeprecatedUse, error] // the sums; without Recent
	DeprecatedUseByDay iter.Seq2[DeprecatedUse, error] // Last is 00:00 UTC of the day; without Recent
	IdempotentRequests iter.Seq2[IdempotentRequest, error]

	LastPet   int64 // the largest ID that a pet ever had; 0: there was none
	LastAudit int64 // the same of audit entries
}

// An IdempotentRequest is the key of a request that created a pet, and that pet.
type IdempotentRequest struct {
	IdempotencyKey
	Pet int64 // its ID
}

// DatabaseImported returns the audit entry for an export that was copied to a database.
func DatabaseImported(x Export, pets, keys int64, by Actor, at time.Time) AuditEntry {
	return AuditEntry{
		At: at, Actor: by.Name, From: by.From, Action: DatabaseImport, Target: x.From,
		Detail: Detail("pets", strconv.FormatInt(pets, 10), "keys", strconv.FormatInt(keys, 10)),
	}
}

// Usage stores the state of the embedded rate limiter, which is usage and bans, across
// restarts. One server writes it at a time.
//
// It promises less than the other interfaces, because it is written twice a second: a
// save survives a crash of the process, but a crash of the machine may lose the latest
// saves, each as a whole.
type Usage interface {
	// SaveUsage replaces the header and stores the records, one after the other, all
	// of it or nothing. A record replaces the one with the same key. A record without
	// data deletes it. SaveUsage does not keep its arguments.
	SaveUsage(ctx context.Context, header []byte, records []memory.Record) error

	// CompactUsage replaces some of what was saved, so that less is kept and loaded.
	// The function all must return all records with keys from first to last that are
	// to be kept, as of now; those that it does not return are deleted. CompactUsage
	// is called after saves, and takes about as long as they did.
	CompactUsage(ctx context.Context, all func(first, last uint64) []memory.Record) error

	// LoadUsage calls load once, with the header that was saved last and all records,
	// as of one instant. The header is nil if nothing was ever saved. Of several
	// records with one key the last counts, with data or without.
	//
	// The records come in portions. The sequence can be ranged over once, before load
	// returns. It ends early at an error, which LoadUsage then returns. LoadUsage also
	// returns the error of load. The portions belong to the caller. In place of
	// records that are damaged there is one whose data is a zero byte.
	LoadUsage(ctx context.Context, load func(header []byte, portions iter.Seq[[]memory.Record]) error) error
}

// An IdempotencyKey names a request that must take effect once, however often the
// client sends it.
type IdempotencyKey struct {
	Owner       string    // the owner of the API key; text as in NewPet.Name
	Key         string    // chosen by the client, for one request of the owner; text as in NewPet.Name
	Fingerprint [32]byte  // of the request, to notice a key that is used for two different ones
	At          time.Time // the time of the request; not zero, as CheckTime has it
}

// IdempotencyLifetime is for how long a request with the same [IdempotencyKey] is the
// same request.
const IdempotencyLifetime = 24 * time.Hour

// Validate returns an error that wraps [ErrInvalid] if k breaks a rule of its type.
func (k IdempotencyKey) Validate() error {
	if err := checkText("owner", k.Owner); err != nil {
		return err
	}
	if err := checkText("idempotency key", k.Key); err != nil {
		return err
	}
	if k.At.IsZero() {
		return fmt.Errorf("%w: time of the request is missing", ErrInvalid)
	}
	return checkTime("time of the request", k.At)
}
