package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// longTimeout is for the answer to a question about everything.
const longTimeout = time.Minute

// readAll returns what scan reads of each row. No rows are an empty slice.
func readAll[T any](ctx context.Context, s *Store, doing string, scan pgx.RowToFunc[T], text string, args ...any) (all []T, err error) {
	err = s.call(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		all, err = pgx.AppendRows([]T{}, rows, scan)
		return err
	}, func(ctx context.Context) (context.Context, context.CancelFunc) {
		return untilDeadline(ctx, max(longTimeout, s.timeout))
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
