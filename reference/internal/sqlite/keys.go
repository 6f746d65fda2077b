package sqlite

import (
	"context"
	"iter"

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

// eachKey returns the keys in a file.
func eachKey(ctx context.Context, on querier) iter.Seq2[store.Key, error] {
	return func(yield func(store.Key, error) bool) {
		keys, err := sqlkeys.NewSQLite(on).List(ctx, "")
		if err != nil {
			yield(store.Key{}, err)
			return
		}
		for _, k := range keys {
			if !yield(k, nil) {
				return
			}
		}
	}
}
