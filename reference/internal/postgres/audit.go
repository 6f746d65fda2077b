package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	insertAuditText = `INSERT INTO audit (at, actor, source, action, target, detail) VALUES ($1, $2, $3, $4, $5, $6)`
	listAuditText   = `SELECT id, at, actor, source, action, target, detail FROM audit
		WHERE at >= $2 OR $2 IS NULL ORDER BY at DESC, id DESC LIMIT $1`
)

// lockAuditText makes transactions that add an entry wait for each other, so that IDs are
// in the order in which the entries are committed.
var lockAuditText = fmt.Sprintf("SELECT pg_advisory_xact_lock(%d, %d)", lockClass, auditLock)

// AddAudit stores an entry of the audit log. See [store.Audits].
func (s *Store) AddAudit(ctx context.Context, e store.AuditEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	return s.transact(ctx, "add to the audit log", func(ctx context.Context, tx pgx.Tx) error {
		return addAudit(ctx, tx, e)
	})
}

// addAudit adds an entry as the last part of a transaction.
func addAudit(ctx context.Context, tx pgx.Tx, e store.AuditEntry) error {
	if _, err := tx.Exec(ctx, lockAuditText); err != nil {
		return err
	}
	return insertAudit(ctx, tx, e)
}

func insertAudit(ctx context.Context, tx pgx.Tx, e store.AuditEntry) error {
	_, err := tx.Exec(ctx, insertAuditText, toMicroseconds(e.At), e.Actor, e.From, e.Action, e.Target, e.Detail)
	return err
}

// ListAudit returns the newest entries of the audit log. See [store.Audits].
func (s *Store) ListAudit(ctx context.Context, q store.AuditQuery) ([]store.AuditEntry, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	return readAll(ctx, s, "list the audit log", func(row pgx.CollectableRow) (e store.AuditEntry, err error) {
		err = row.Scan(&e.ID, &e.At, &e.Actor, &e.From, &e.Action, &e.Target, &e.Detail)
		e.At = e.At.UTC()
		return e, err
	}, listAuditText, q.Limit, orNull(q.Since))
}
