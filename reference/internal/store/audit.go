package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
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
	ID     int64     `json:"id"`               // from 1, in the order in which the entries were stored
	At     time.Time `json:"at"`               // not zero; as CheckTime has it
	Actor  string    `json:"actor"`            // as in Actor.Name
	From   string    `json:"from,omitempty"`   // as in Actor.From
	Action string    `json:"action"`           // such as KeyCreate; text as in NewPet.Name
	Target string    `json:"target"`           // what was changed; 1 to MaxDetail bytes, no control characters
	Detail string    `json:"detail,omitempty"` // name="value" pairs for people, 0 to MaxDetail bytes, no control characters
}

// MaxDetail is the largest number of bytes in a target or detail of an audit entry.
const MaxDetail = 8192

// Validate returns an error that wraps [ErrInvalid] if e breaks a rule of its type. It
// does not check the ID.
func (e AuditEntry) Validate() error {
	if e.Target == "" {
		return fmt.Errorf("%w: target of the audit entry is missing", ErrInvalid)
	}
	return cmp.Or(
		Actor{e.Actor, e.From}.Validate(), checkText("audited action", e.Action), checkTime("time of the audit entry", e.At),
		checkDetail("target", e.Target), checkDetail("detail", e.Detail))
}

func checkDetail(what, text string) error {
	if len(text) > MaxDetail || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%w: %s of the audit entry must be UTF-8 of at most %d bytes without control characters",
			ErrInvalid, what, MaxDetail)
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

// keyCreated returns the audit entry for a key that was created.
func keyCreated(k Key, by Actor) AuditEntry {
	return keyEntry(KeyCreate, k, k.Created, by, Detail("plan", k.Plan, "quotas", strings.Join(k.Quotas, ", "),
		"limits", strings.Join(k.Limits, ", "), "expires", expiry(k.Expires)))
}

// keyRevoked returns the audit entry for a key that was revoked.
func keyRevoked(k Key, by Actor) AuditEntry {
	return keyEntry(KeyRevoke, k, k.Revoked, by, "")
}

// keyRotated returns the audit entry for a key that a new one replaces. Both are as they are
// afterwards.
func keyRotated(old, fresh Key, by Actor) AuditEntry {
	return keyEntry(KeyRotate, old, fresh.Created, by, Detail(
		"new", fresh.ID, "new_expires", expiry(fresh.Expires), "old_expires", expiry(old.Expires)))
}

func keyEntry(action string, k Key, at time.Time, by Actor, more string) AuditEntry {
	return AuditEntry{
		At: at, Actor: by.Name, From: by.From, Action: action, Target: k.ID,
		Detail: strings.TrimSpace(Detail("owner", k.Owner, "name", k.Name) + " " + more),
	}
}

// DatabaseImported returns the audit entry for an export that was copied to a database.
func DatabaseImported(x Export, pets, keys int64, by Actor, at time.Time) AuditEntry {
	return AuditEntry{
		At: at, Actor: by.Name, From: by.From, Action: DatabaseImport, Target: x.From,
		Detail: Detail("pets", strconv.FormatInt(pets, 10), "keys", strconv.FormatInt(keys, 10)),
	}
}

// Detail returns the detail of an audit entry for names and values, one after the other.
// It escapes control characters and those that change how text is shown. Names with an
// empty value are left out.
func Detail(namesAndValues ...string) string {
	var b strings.Builder
	for i := 0; i < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(namesAndValues[i] + "=" + strconv.Quote(namesAndValues[i+1]))
	}
	return b.String()
}

func expiry(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
