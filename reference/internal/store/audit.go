package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// An Actor is the person or program that changes something.
type Actor struct {
	Name string // such as "cli:ada@host", "admin" or "server"; text as in NewPet.Name
	From string // the address that the request came from; text as in NewPet.Name, or empty
}

// Validate returns an error that wraps [ErrInvalid] if a breaks a rule of its type.
func (a Actor) Validate() error {
	if err := checkText("actor", a.Name); err != nil {
		return err
	}
	if a.From == "" {
		return nil
	}
	return checkText("address of the actor", a.From)
}

// The actions in the audit log.
const (
	KeyCreate       = "key.create"       // target: the ID of the key
	KeyRevoke       = "key.revoke"       // target: the ID of the key
	KeyRotate       = "key.rotate"       // target: the ID of the old key
	BanStart        = "ban.start"        // target: the subject; by an operator, not by the limiter
	BanEnd          = "ban.end"          // target: the subject
	DatabaseRestore = "database.restore" // target: the path of the backup
	DatabaseImport  = "database.import"  // target: the path of the SQLite file
)

// An AuditEntry says who changed what, and when. None of its fields ever holds a
// secret.
type AuditEntry struct {
	ID     int64     // from 1, in the order in which the entries were stored
	At     time.Time // not zero; as CheckTime has it
	Actor  string    // as in Actor.Name
	From   string    // as in Actor.From
	Action string    // such as KeyCreate; text as in NewPet.Name
	Target string    // what was changed; 1 to MaxDetail bytes, no control characters
	Detail string    // name="value" pairs for people, 0 to MaxDetail bytes, no control characters
}

// MaxDetail is the largest number of bytes in a target or detail of an audit entry.
const MaxDetail = 8192

// Validate returns an error that wraps [ErrInvalid] if e breaks a rule of its type. It
// does not check the ID.
func (e AuditEntry) Validate() error {
	if err := (Actor{e.Actor, e.From}).Validate(); err != nil {
		return err
	}
	if err := checkText("audited action", e.Action); err != nil {
		return err
	}
	switch {
	case e.At.IsZero():
		return fmt.Errorf("%w: time of the audit entry is missing", ErrInvalid)
	case e.Target == "":
		return fmt.Errorf("%w: target of the audit entry is missing", ErrInvalid)
	}
	if err := checkTime("time of the audit entry", e.At); err != nil {
		return err
	}
	for _, text := range []struct{ what, value string }{{"target", e.Target}, {"detail", e.Detail}} {
		if len(text.value) > MaxDetail || !utf8.ValidString(text.value) || strings.ContainsFunc(text.value, unicode.IsControl) {
			return fmt.Errorf("%w: %s of the audit entry must be UTF-8 of at most %d bytes without control characters",
				ErrInvalid, text.what, MaxDetail)
		}
	}
	return nil
}

// MaxAudit is the largest number of entries that [Audits.ListAudit] returns.
const MaxAudit = 10_000

// An AuditQuery asks for the newest entries of the audit log.
type AuditQuery struct {
	Since time.Time // only entries of this time or later; zero: of any time
	Limit int       // entries, 1 to MaxAudit
}

// Validate returns an error that wraps [ErrInvalid] if q breaks a rule of its type.
func (q AuditQuery) Validate() error {
	if q.Limit < 1 || q.Limit > MaxAudit {
		return fmt.Errorf("%w: limit must be 1 to %d, got %d", ErrInvalid, MaxAudit, q.Limit)
	}
	return nil
}

// Audits stores the audit log. Entries are never changed or deleted. The methods of
// [Keys] that change a key store its entry with the change, both or neither.
type Audits interface {
	// AddAudit stores an entry, with an ID of its own. An entry that does not pass
	// Validate is refused with [ErrInvalid].
	AddAudit(ctx context.Context, e AuditEntry) error

	// ListAudit returns the newest entries that q asks for, by time and within one
	// instant by ID, the newest first. No entries are an empty slice.
	ListAudit(ctx context.Context, q AuditQuery) ([]AuditEntry, error)
}
