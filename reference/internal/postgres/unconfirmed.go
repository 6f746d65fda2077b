package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errUnconfirmed: the server has committed, and no synchronous standby has confirmed it,
// because something canceled the wait (pg_cancel_backend). A failover can lose the write.
var errUnconfirmed = errors.New("the commit was canceled while it waited for the synchronous standby")

// unconfirmed is the key of the custom data of a connection whose server has warned so.
const unconfirmed = "petstore.unconfirmed"

// noteUnconfirmed notes the warning. The text of it is translated, and its code is that of
// any warning, so it is known by the function of the server that gives it.
func noteUnconfirmed(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		conn.CustomData()[unconfirmed] = true
	}
}

// confirmed returns err, or errUnconfirmed if a write without an error was not confirmed.
func confirmed(conn *pgx.Conn, err error) error {
	data := conn.PgConn().CustomData()
	warned := data[unconfirmed] != nil
	delete(data, unconfirmed)
	if err == nil && warned {
		return &unknownError{errUnconfirmed}
	}
	return err
}
