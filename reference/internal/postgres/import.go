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
	// The import waits for transactions of servers that have begun, for at most lock_timeout.
	// The import itself takes as long as it needs.
	importSettingsText = `SELECT set_config('lock_timeout', '10s', true), set_config('statement_timeout', '0', true),
		set_config('idle_in_transaction_session_timeout', '0', true)`

	// An ID that was given, here or there, is not given again. A sequence is not part of the
	// transaction, so an import that failed may have used numbers.
	lastIDText = `SELECT setval(s, greatest($2, nextval(s))) FROM (SELECT pg_get_serial_sequence($1, 'id')::regclass) AS sequence (s)`

	// commitTimeout is for the commit of everything, also on a synchronous standby.
	commitTimeout = time.Minute
)

// ErrNotEmpty: the database has content, so nothing can be imported.
var ErrNotEmpty = errors.New("not empty")

// Import copies an export into a database that is empty, in one transaction, and adds an
// entry to the audit log. It returns how many rows it has copied, by table. A database with
// content is refused with [ErrNotEmpty]. While the import runs, reads find nothing, and
// writes wait for it until they time out. It takes as long as it needs, until ctx ends.
// The user needs the rights of the owner of the tables.
func (s *Store) Import(ctx context.Context, x store.Export, by store.Actor, at time.Time) (copied map[string]int64, err error) {
	if err := store.DatabaseImported(x, 0, 0, by, at).Validate(); err != nil {
		return nil, err
	}
	what := "copy the rows: " + s.name
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, explain(what, err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, explain(what, err)
	}
	copied, err = s.importAll(ctx, tx, x, by, at)
	switch {
	case err == nil: // the outcome must be known, even if ctx has ended
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
		defer cancel()
		err = stored(conn.Conn(), tx.Commit(ctx))
	case ctx.Err() != nil: // because of it, the driver has closed the connection
		err = ctx.Err()
	case conn.Conn().IsClosed():
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	if err != nil {
		_ = tx.Rollback(ctx) // or its connection is lost, which does the same
		return nil, explain(what, err)
	}
	return copied, nil
}

func (s *Store) importAll(ctx context.Context, tx pgx.Tx, x store.Export, by store.Actor, at time.Time) (copied map[string]int64, err error) {
	var names []string
	for _, t := range x.Tables {
		names = append(names, t.Name)
	}
	// It waits for writes that have begun, and excludes others until the transaction ends.
	// Reads go on.
	lockText := "LOCK TABLE " + strings.Join(names, ", ") + " IN SHARE ROW EXCLUSIVE MODE"
	for _, text := range []string{importSettingsText, lockText} {
		if _, err := tx.Exec(ctx, text); err != nil {
			return nil, err
		}
	}
	if err := checkEmpty(ctx, tx, names); err != nil {
		return nil, err
	}
	copied = map[string]int64{}
	for _, t := range x.Tables {
		if copied[t.Name], err = copyTable(ctx, tx, t); err != nil {
			return nil, err
		}
		if t.LastID > 0 {
			if _, err := tx.Exec(ctx, lastIDText, t.Name, t.LastID); err != nil {
				return nil, err
			}
		}
	}
	// Without the lock of the audit log: a transaction that has it may be waiting for the table.
	return copied, store.InsertAudit(ctx, store.PostgreSQL, s.view(tx), store.DatabaseImported(x, copied["pets"], copied["keys"], by, at))
}

// checkEmpty returns [ErrNotEmpty] if a table has rows.
func checkEmpty(ctx context.Context, tx pgx.Tx, tables []string) error {
	var filled []string
	for _, name := range tables {
		var exists bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+name+")").Scan(&exists); err != nil {
			return err
		}
		if exists {
			filled = append(filled, name)
		}
	}
	if len(filled) > 0 {
		return fmt.Errorf("%w: it has rows in %s; import before the first server starts, or into another database", ErrNotEmpty, strings.Join(filled, ", "))
	}
	return nil
}

// copyTable copies the rows of a table, and returns their number.
func copyTable(ctx context.Context, tx pgx.Tx, t store.Table) (int64, error) {
	next, stop := iter.Pull2(t.Rows)
	defer stop()
	var failed error
	n, err := tx.CopyFrom(ctx, pgx.Identifier{t.Name}, t.Columns, pgx.CopyFromFunc(func() ([]any, error) {
		row, err, _ := next() // at the end no row and no error
		failed = err
		return row, err
	}))
	if failed != nil { // PostgreSQL only says that the copy was canceled
		return 0, failed
	}
	return n, err
}
