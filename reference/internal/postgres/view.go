package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
)

// A querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
}

// view returns the database as a connection or a transaction sees it.
func (s *Store) view(on querier) sqlkeys.DB { return viewDB{s.views, on} }

// A viewDB is a [sqlkeys.DB] in which database/sql finds the connection in the context of each
// query. Package stdlib of pgx would take a connection from the pool itself.
type viewDB struct {
	views *sql.DB
	on    querier
}

func (k viewDB) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	// Database/sql would watch ctx with a goroutine for each query, and pgx does so too.
	return k.views.QueryContext(context.WithValue(context.Background(), connector{}, view{ctx, k.on}), text, args...)
}

// A connector finds the [view] in a context.
type connector struct{}

func (connector) Connect(ctx context.Context) (driver.Conn, error) {
	return ctx.Value(connector{}).(view), nil
}
func (connector) Driver() driver.Driver { return nil }

// A view is a connection or a transaction that can only make queries.
type view struct {
	ctx context.Context
	on  querier
}

func (v view) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (v view) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (v view) Close() error                        { return nil }

func (v view) QueryContext(_ context.Context, text string, named []driver.NamedValue) (driver.Rows, error) {
	args := make([]any, len(named))
	for i, arg := range named {
		args[i] = arg.Value
	}
	rows, err := v.on.Query(v.ctx, text, args...)
	if err != nil {
		return nil, err
	}
	next := rows.Next() // only then the columns are known
	return &viewRows{rows, next}, nil
}

type viewRows struct {
	pgx.Rows
	next bool
}

func (r *viewRows) Columns() []string { return make([]string, len(r.FieldDescriptions())) }

func (r *viewRows) Close() error {
	r.Rows.Close()
	return r.Err()
}

func (r *viewRows) Next(into []driver.Value) error {
	if !r.next {
		if err := r.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	values, err := r.Values()
	for i, value := range values {
		into[i] = value
	}
	r.next = r.Rows.Next()
	return err
}
