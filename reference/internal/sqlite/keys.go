package sqlite

import (
	"context"

	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// readKeys is a [store.ReadKeys].
func (s *Store) readKeys(ctx context.Context, doing string, do func(context.Context, *sqlkeys.Table) error) error {
	return s.wrap(doing, do(ctx, sqlkeys.NewSQLite(s.reads)))
}

// writeKeys is a [store.WriteKeys].
func (s *Store) writeKeys(ctx context.Context, doing string, do func(context.Context, *sqlkeys.Table, func(store.AuditEntry) error) error) error {
	return s.write(ctx, doing, func(ctx context.Context) error {
		return do(ctx, sqlkeys.NewSQLite(&s.writer.prepared), func(e store.AuditEntry) error { return s.insertAudit(ctx, e) })
	})
}
