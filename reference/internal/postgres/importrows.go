package postgres

import (
	"context"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// copyAll copies the rows of an export, and returns how many pets and keys there are.
func copyAll(ctx context.Context, tx pgx.Tx, x store.Export) (pets, keys int64, err error) {
	pets, err = copyRows(ctx, tx, "pets", "id, name, category_id, status", x.Pets, func(p store.Pet) []any {
		return []any{p.ID, p.Name, p.CategoryID, string(p.Status)}
	})
	if err != nil {
		return 0, 0, err
	}
	keys, err = copyRows(ctx, tx, "keys", keyColumns, x.Keys, func(k store.Key) []any {
		return []any{
			k.ID, k.Digest[:], k.LastFour, k.Name, k.Owner, k.Plan, append([]string{}, k.Quotas...), append([]string{}, k.Limits...),
			k.Created, orNull(k.Expires), orNull(k.Revoked),
		}
	})
	if err != nil {
		return 0, 0, err
	}
	_, err = copyRows(ctx, tx, "audit", "id, at, actor, source, action, target, detail", x.Audit, func(e store.AuditEntry) []any {
		return []any{e.ID, e.At, e.Actor, e.From, e.Action, e.Target, e.Detail}
	})
	if err != nil {
		return 0, 0, err
	}
	if err := copyUse(ctx, tx, x); err != nil {
		return 0, 0, err
	}
	_, err = copyRows(ctx, tx, "idempotency_keys", "owner, key, fingerprint, pet, at", x.IdempotentRequests, func(r store.IdempotentRequest) []any {
		return []any{r.Owner, r.Key, r.Fingerprint[:], r.Pet, r.At}
	})
	return pets, keys, err
}

// copyUse copies what was counted.
func copyUse(ctx context.Context, tx pgx.Tx, x store.Export) error {
	_, err := copyRows(ctx, tx, "daily_use", "owner, day, allowed, denied", x.DailyUse, func(u store.DailyUse) []any {
		return []any{u.Owner, dayOf(u.Day), u.Allowed, u.Denied}
	})
	if err != nil {
		return err
	}
	_, err = copyRows(ctx, tx, "deprecated_use", "operation, owner, count, last", x.DeprecatedUse, func(u store.DeprecatedUse) []any {
		return []any{u.Operation, u.Owner, u.Count, u.Last}
	})
	if err != nil {
		return err
	}
	_, err = copyRows(ctx, tx, "deprecated_use_by_day", "day, operation, owner, count", x.DeprecatedUseByDay, func(u store.DeprecatedUse) []any {
		return []any{dayOf(u.Last), u.Operation, u.Owner, u.Count}
	})
	return err
}

// A readError is an error of the rows to copy, not of PostgreSQL.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

// copyRows copies rows to a table, and returns their number.
func copyRows[T any](ctx context.Context, tx pgx.Tx, table, columns string, rows iter.Seq2[T, error], values func(T) []any) (int64, error) {
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
