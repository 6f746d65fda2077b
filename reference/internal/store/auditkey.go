package store

import (
	"strconv"
	"strings"
	"time"
)

// KeyCreated returns the audit entry for a key that was created.
func KeyCreated(k Key, by Actor) AuditEntry {
	return keyEntry(KeyCreate, k, k.Created, by, Detail("plan", k.Plan, "quotas", strings.Join(k.Quotas, ", "),
		"limits", strings.Join(k.Limits, ", "), "expires", expiry(k.Expires)))
}

// KeyRevoked returns the audit entry for a key that was revoked.
func KeyRevoked(k Key, by Actor) AuditEntry {
	return keyEntry(KeyRevoke, k, k.Revoked, by, "")
}

// KeyRotated returns the audit entry for a key that a new one replaces. The old key is
// as it was before.
func KeyRotated(old, fresh Key, r Rotation, by Actor) AuditEntry {
	return keyEntry(KeyRotate, old, r.At, by, Detail(
		"new", fresh.ID, "new_expires", expiry(fresh.Expires), "old_expires", expiry(r.OldExpires(old.Expires))))
}

func keyEntry(action string, k Key, at time.Time, by Actor, more string) AuditEntry {
	return AuditEntry{
		At: at, Actor: by.Name, From: by.From, Action: action, Target: k.ID,
		Detail: strings.TrimSpace(Detail("owner", k.Owner, "name", k.Name) + " " + more),
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
