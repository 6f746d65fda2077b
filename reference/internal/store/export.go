package store

import (
	"iter"
	"strconv"
	"time"
)

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
