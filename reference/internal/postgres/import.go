package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	// Transactions of servers that have begun may keep the import from its locks for as long
	// as lock_timeout. The import itself takes as long as it needs.
	importSettingsText = `SELECT set_config('lock_timeout', '10s', true), set_config('statement_timeout', '0', true),
		set_config('idle_in_transaction_session_timeout', '0', true)`

	// lockAllText waits for writes that have begun, and excludes others until the
	// transaction ends. Reads go on. The order of the tables is that of other transactions.
	lockAllText = `LOCK TABLE pets, idempotency_keys, keys, audit, daily_use, deprecated_use, deprecated_use_by_day IN SHARE ROW EXCLUSIVE MODE`

	contentText = `SELECT array_remove(ARRAY[
		CASE WHEN EXISTS (SELECT FROM pets) THEN 'pets' END,
		CASE WHEN EXISTS (SELECT FROM keys) THEN 'keys' END,
		CASE WHEN EXISTS (SELECT FROM audit) THEN 'audit entries' END,
		CASE WHEN EXISTS (SELECT FROM daily_use) OR EXISTS (SELECT FROM deprecated_use)
			OR EXISTS (SELECT FROM deprecated_use_by_day) THEN 'counts of use' END,
		CASE WHEN EXISTS (SELECT FROM idempotency_keys) THEN 'idempotency keys' END], NULL)`

	// An ID that was given, here or there, is not given again. A sequence is not part of the
	// transaction, so that it may lack numbers after an import that failed.
	lastIDText = `SELECT setval(s, greatest($2, nextval(s))) FROM (SELECT pg_get_serial_sequence($1, 'id')::regclass) AS sequence (s)`
)

// ErrNotEmpty: a database has content, so that nothing can be imported.
var ErrNotEmpty = errors.New("not empty")

// Import copies an export into a database that is empty, in one transaction, and adds an
// entry to the audit log. It returns how many pets and keys it has copied. A database with
// content is refused with [ErrNotEmpty]. While the import runs, reads find nothing, and
// writes wait for it until they time out. It takes as long as it needs, until ctx ends.
// The user needs the rights of the owner of the tables.
func (s *Store) Import(ctx context.Context, x store.Export, by store.Actor, at time.Time) (pets, keys int64, err error) {
	const doing = "copy the rows"
	if err := store.DatabaseImported(x, 0, 0, by, at).Validate(); err != nil {
		return 0, 0, err
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return 0, 0, s.wrap(doing, err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return 0, 0, s.wrap(doing, err)
	}
	if pets, keys, err = importAll(ctx, tx, x, by, at); err != nil {
		_ = tx.Rollback(ctx) // or its connection is lost, which does the same
		if ctx.Err() != nil && isLost(err) {
			err = ctx.Err() // because of it, the driver has closed the connection
		}
	} else {
		err = commitLong(ctx, tx)
	}
	switch read, isRead := errors.AsType[*readError](err); {
	case err == nil:
		return pets, keys, nil
	case isRead: // not about PostgreSQL
		return 0, 0, read.error
	case errors.Is(err, ErrNotEmpty):
		return 0, 0, fmt.Errorf("%s is %w", s.name, err)
	case state(err) == insufficientPrivilege: // the servers have none on the sequences
		return 0, 0, fmt.Errorf("%s: %s: import as the owner of the tables: %w", doing, s.name, oneLine{err})
	case state(err) == notInRepertoire: // a text of the export, which wrap takes for one to find
		return 0, 0, fmt.Errorf("%s: %s: %w", doing, s.name, oneLine{err})
	}
	return 0, 0, s.wrap(doing, err)
}

// commitLong commits even if ctx has ended, so that the outcome is known.
func commitLong(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longTimeout)
	defer cancel()
	return confirmed(tx.Conn(), outcome(tx.Commit(ctx)))
}

func importAll(ctx context.Context, tx pgx.Tx, x store.Export, by store.Actor, at time.Time) (pets, keys int64, err error) {
	for _, text := range []string{importSettingsText, lockAllText} {
		if _, err := tx.Exec(ctx, text); err != nil {
			return 0, 0, err
		}
	}
	var content []string
	if err := tx.QueryRow(ctx, contentText).Scan(&content); err != nil {
		return 0, 0, err
	}
	if len(content) > 0 {
		return 0, 0, fmt.Errorf("%w: it has %s; import before the first server starts, or into another database", ErrNotEmpty, strings.Join(content, ", "))
	}
	if pets, keys, err = copyAll(ctx, tx, x); err != nil {
		return 0, 0, err
	}
	for table, last := range map[string]int64{"pets": x.LastPet, "audit": x.LastAudit} {
		if last == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, lastIDText, table, last); err != nil {
			return 0, 0, err
		}
	}
	// Without lockAuditText: another transaction may have it and wait for the table.
	return pets, keys, insertAudit(ctx, tx, store.DatabaseImported(x, pets, keys, by, at))
}

// copyAll copies the rows of an export, and returns how many pets and keys there are.
func copyAll(ctx context.Context, tx pgx.Tx, x store.Export) (pets, keys int64, err error) {
	var copied [7]int64
	for i, table := range [len(copied)]func() (int64, error){
		copyRows(ctx, tx, "pets", "id, name, category_id, status", x.Pets, func(p store.Pet) []any {
			return []any{p.ID, p.Name, p.CategoryID, string(p.Status)}
		}),
		copyRows(ctx, tx, "keys", "id, digest, last_four, name, owner, plan, quotas, limits, created, expires, revoked", x.Keys, func(k store.Key) []any {
			return []any{
				k.ID, k.Digest[:], k.LastFour, k.Name, k.Owner, k.Plan, append([]string{}, k.Quotas...), append([]string{}, k.Limits...),
				k.Created, orNull(k.Expires), orNull(k.Revoked),
			}
		}),
		copyRows(ctx, tx, "audit", "id, at, actor, source, action, target, detail", x.Audit, func(e store.AuditEntry) []any {
			return []any{e.ID, e.At, e.Actor, e.From, e.Action, e.Target, e.Detail}
		}),
		copyRows(ctx, tx, "daily_use", "owner, day, allowed, denied", x.DailyUse, func(u store.DailyUse) []any {
			return []any{u.Owner, dayOf(u.Day), u.Allowed, u.Denied}
		}),
		copyRows(ctx, tx, "deprecated_use", "operation, owner, count, last", x.DeprecatedUse, func(u store.DeprecatedUse) []any {
			return []any{u.Operation, u.Owner, u.Count, u.Last}
		}),
		copyRows(ctx, tx, "deprecated_use_by_day", "day, operation, owner, count", x.DeprecatedUseByDay, func(u store.DeprecatedUse) []any {
			return []any{dayOf(u.Last), u.Operation, u.Owner, u.Count}
		}),
		copyRows(ctx, tx, "idempotency_keys", "owner, key, fingerprint, pet, at", x.IdempotentRequests, func(r store.IdempotentRequest) []any {
			return []any{r.Owner, r.Key, r.Fingerprint[:], r.Pet, r.At}
		}),
	} {
		if copied[i], err = table(); err != nil {
			return 0, 0, err
		}
	}
	return copied[0], copied[1], nil
}

// A readError is an error of the rows to copy, not of PostgreSQL.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

// copyRows returns a function that copies rows to a table, and returns their number.
func copyRows[T any](ctx context.Context, tx pgx.Tx, table, columns string, rows iter.Seq2[T, error], values func(T) []any) func() (int64, error) {
	return func() (int64, error) {
		next, stop := iter.Pull2(rows)
		defer stop()
		var failed error
		n, err := tx.CopyFrom(ctx, pgx.Identifier{table}, strings.Split(columns, ", "), pgx.CopyFromFunc(func() ([]any, error) {
			row, err, more := next()
			switch {
			case !more:
				return nil, nil
			case err != nil:
				failed = err
				return nil, err
			}
			return values(row), nil
		}))
		if failed != nil { // PostgreSQL only says that the copy was canceled
			return 0, &readError{failed}
		}
		return n, err
	}
}
