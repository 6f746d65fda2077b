package sqlite

import (
	"context"
	"math"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	auditColumns = `id, at, actor, source, action, target, detail`

	addAuditText  = `INSERT INTO audit (at, actor, source, action, target, detail) VALUES (?, ?, ?, ?, ?, ?)`
	listAuditText = `SELECT ` + auditColumns + ` FROM audit
		WHERE at >= ? ORDER BY at DESC, id DESC LIMIT ?`
)

// AddAudit stores an entry of the audit log. See [store.Audits].
func (s *Store) AddAudit(ctx context.Context, e store.AuditEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if err := s.writer.write(ctx, func(ctx context.Context) error { return s.insertAudit(ctx, e) }); err != nil {
		return s.wrap("add to the audit log", err)
	}
	return nil
}

// insertAudit is called by the writer.
func (s *Store) insertAudit(ctx context.Context, e store.AuditEntry) error {
	_, err := s.addAudit.ExecContext(ctx, e.At.UnixMicro(), e.Actor, e.From, e.Action, e.Target, e.Detail)
	return err
}

// ListAudit returns the newest entries of the audit log. See [store.Audits].
func (s *Store) ListAudit(ctx context.Context, q store.AuditQuery) ([]store.AuditEntry, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	since := int64(math.MinInt64)
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
	}
	rows, err := s.listAudit.QueryContext(ctx, since, q.Limit)
	if err != nil {
		return nil, s.wrap("list the audit log", err)
	}
	defer rows.Close()

	entries := []store.AuditEntry{}
	for rows.Next() {
		e, err := scanAudit(rows)
		if err != nil {
			return nil, s.wrap("list the audit log", err)
		}
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		return nil, s.wrap("list the audit log", err)
	}
	return entries, nil
}

// scanAudit reads the columns of auditColumns.
func scanAudit(row scanner) (e store.AuditEntry, err error) {
	var at int64
	err = row.Scan(&e.ID, &at, &e.Actor, &e.From, &e.Action, &e.Target, &e.Detail)
	e.At = instant(at)
	return e, err
}
