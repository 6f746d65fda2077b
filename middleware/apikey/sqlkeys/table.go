// Package sqlkeys keeps API keys in SQLite or PostgreSQL, through database/sql and any driver:
//
//	keys := sqlkeys.NewSQLite(db) // or NewPostgreSQL
//	_, err = db.ExecContext(ctx, keys.Schema())
//	secret := format.Generate()
//	key, err := keys.Create(ctx, sqlkeys.NewKey{
//		Digest: secret.Digest(), LastFour: secret.LastFour(),
//		Name: "web shop", Owner: "ann", Plan: "free", Created: time.Now(),
//	})
//	fmt.Println(secret.Reveal()) // shown once, stored nowhere
//	verifier, err := apikey.NewVerifier(format, sqlkeys.NewStore(keys.ByDigest, keys.Used, plan), apikey.Options{})
//
// The table is called keys. Its schema is sqlite.sql or postgresql.sql of this package, for the
// migrations of a service. SQLite has one writer at a time: set a busy timeout. A method
// changes all that it says, or nothing. To write an entry of an audit log with a key, use
// NewSQLite(tx) in a transaction, which can go on after an error of this package. Roll it back
// after any other. No method gives keys another plan: UPDATE their columns plan and quotas.
package sqlkeys

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

// A DB is a [*sql.DB], a [*sql.Conn] or a [*sql.Tx]. Another one is taken to be in a
// transaction, unless it has the method BeginTx as the first two have.
type DB interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A Table is the table of keys. It is as safe for concurrent use as its [DB].
type Table struct {
	db DB
	*dialect
}

// NewSQLite returns the table in a SQLite database.
func NewSQLite(db DB) *Table { return &Table{db, &sqlite} }

// NewPostgreSQL returns the table in a PostgreSQL database.
func NewPostgreSQL(db DB) *Table { return &Table{db, &postgreSQL} }

// Schema returns the statement that makes the table if there is none.
func (t *Table) Schema() string { return t.schema }

// Create stores a key and gives it an ID. The errors are [ErrInvalid], and [ErrExists] for a
// digest that is stored.
func (t *Table) Create(ctx context.Context, k NewKey) (Key, error) {
	return t.insert(ctx, t.db, k, "true")
}

// CreateFirst does the same if no key was ever stored, and returns [ErrExists] otherwise. Of
// several concurrent calls one succeeds; transactions of PostgreSQL must be READ COMMITTED for it.
func (t *Table) CreateFirst(ctx context.Context, k NewKey) (key Key, err error) {
	err = t.transact(ctx, func(db DB) error {
		if _, err = t.read(ctx, db, t.lockTable); err == nil {
			key, err = t.insert(ctx, db, k, "NOT EXISTS (SELECT 1 FROM keys)")
		}
		return err
	})
	return key, err
}

// insert stores a key if a condition holds and there is no such key.
func (t *Table) insert(ctx context.Context, db DB, k NewKey, condition string) (Key, error) {
	if err := k.validate(); err != nil {
		return Key{}, err
	}
	return t.one(ctx, db, ErrExists, `INSERT INTO keys (id, digest, last_four, name, owner, plan, quotas, limits, created, expires)
		SELECT `+t.values+` WHERE `+condition+` ON CONFLICT DO NOTHING RETURNING `+t.columns,
		apikey.NewKeyID(), k.Digest, k.LastFour, k.Name, k.Owner, k.Plan, jsonOf(k.Quotas), jsonOf(k.Limits), t.time(k.Created), t.time(k.Expires))
}

// ByDigest returns the key with a digest, active or not, or [ErrNotFound].
func (t *Table) ByDigest(ctx context.Context, d apikey.Digest) (Key, error) {
	return t.one(ctx, t.db, ErrNotFound, `SELECT `+t.columns+` FROM keys WHERE digest = $1`, d)
}

// ByID returns the key with an ID, active or not, or [ErrNotFound].
func (t *Table) ByID(ctx context.Context, id string) (Key, error) {
	return t.one(ctx, t.db, ErrNotFound, `SELECT `+t.columns+` FROM keys WHERE id = $1`, id)
}

// List returns the keys of an owner, active or not, in order of their creation and, within one
// instant, of their IDs. With "" it returns the keys of all owners. No keys are an empty slice.
func (t *Table) List(ctx context.Context, owner string) ([]Key, error) {
	return t.read(ctx, t.db, `SELECT `+t.columns+` FROM keys WHERE $1 IN ('', owner) ORDER BY created, id`, owner)
}

// Revoke revokes a key at an instant, and returns it. A key that was revoked before keeps its
// instant, and changed is false. The errors are [ErrInvalid] and [ErrNotFound].
func (t *Table) Revoke(ctx context.Context, id string, at time.Time) (key Key, changed bool, err error) {
	if stored(at).IsZero() {
		return Key{}, false, fmt.Errorf("sqlkeys: %w: the time of revocation must be in the years 1 to 9999", ErrInvalid)
	}
	err = t.transact(ctx, func(db DB) error {
		if key, err = t.lock(ctx, db, id); err != nil || !key.Revoked.IsZero() {
			return err
		}
		changed = true
		key, err = t.one(ctx, db, ErrNotFound, `UPDATE keys SET revoked = $1 WHERE id = $2 RETURNING `+t.columns, t.time(at), id)
		return err
	})
	return key, changed, err
}

// Used notes that a key was used at an instant, unless a later use is noted. If there is no such
// key, it does nothing.
func (t *Table) Used(ctx context.Context, id string, at time.Time) error {
	_, err := t.read(ctx, t.db, `UPDATE keys SET last_used = $1 WHERE id = $2 AND coalesce(last_used < $3, true) RETURNING `+t.columns, t.time(at), id, t.time(at))
	return err
}

// Rotate stores a new key in place of an old one, which stays valid for an overlap, unless it
// expires sooner; if the overlap is negative, not at all. k has only Digest, LastFour, Created and
// Expires: the new key has everything else from the old one. Rotate returns both as they are then,
// or the errors of Create, [ErrNotFound], and [ErrInactive] if the old is not active at k.Created.
func (t *Table) Rotate(ctx context.Context, id string, k NewKey, overlap time.Duration) (old, fresh Key, err error) {
	if k.Name+k.Owner+k.Plan != "" || len(k.Quotas)+len(k.Limits) > 0 {
		return old, fresh, fmt.Errorf("sqlkeys: %w: a rotation must leave name, owner, plan, quotas and limits as they are", ErrInvalid)
	}
	err = t.transact(ctx, func(db DB) error {
		if old, err = t.lock(ctx, db, id); err != nil {
			return err
		}
		if !old.Active(k.Created) {
			return fmt.Errorf("sqlkeys: key %w", ErrInactive)
		}
		next := old.NewKey
		next.Digest, next.LastFour, next.Created, next.Expires = k.Digest, k.LastFour, k.Created, k.Expires
		if fresh, err = t.insert(ctx, db, next, "true"); err != nil {
			return err
		}
		end := apikey.Record[apikey.Principal]{Expires: old.Expires}.ExpireAfter(k.Created, overlap).Expires
		old, err = t.one(ctx, db, ErrNotFound, `UPDATE keys SET expires = $1 WHERE id = $2 RETURNING `+t.columns, t.time(end), id)
		return err
	})
	return old, fresh, err
}

// lock returns a key, and keeps others from changing it. It writes first, because a transaction
// of SQLite that begins with a read can fail later, and because one of PostgreSQL waits for the
// synchronous standby only if it writes: the standby may lack a revocation that is found.
func (t *Table) lock(ctx context.Context, db DB, id string) (Key, error) {
	return t.one(ctx, db, ErrNotFound, `UPDATE keys SET revoked = revoked WHERE id = $1 RETURNING `+t.columns, id)
}

// one returns the key that a statement returns, and an error if it returns none.
func (t *Table) one(ctx context.Context, db DB, none error, statement string, args ...any) (Key, error) {
	keys, err := t.read(ctx, db, statement, args...)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("sqlkeys: key %w", none)
	}
	if err != nil {
		return Key{}, err
	}
	return keys[0], nil
}

// read returns the keys that a statement returns.
func (t *Table) read(ctx context.Context, db DB, statement string, args ...any) ([]Key, error) {
	keys := []Key{}
	if slices.ContainsFunc(args, func(arg any) bool { text, _ := arg.(string); return !storable(text) }) {
		return keys, nil // no key has such an ID or owner, and PostgreSQL would fail
	}
	rows, err := db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k Key
		err := rows.Scan(&k.ID, &k.Digest, &k.LastFour, &k.Name, &k.Owner, &k.Plan, (*texts)(&k.Quotas), (*texts)(&k.Limits),
			(*instant)(&k.Created), (*instant)(&k.Expires), (*instant)(&k.Revoked), (*instant)(&k.LastUsed))
		if err != nil {
			return nil, fmt.Errorf("sqlkeys: key %q: %w", k.ID, err)
		}
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

// transact runs do in a transaction, which it begins if the DB can begin one.
func (t *Table) transact(ctx context.Context, do func(DB) error) error {
	db, ok := t.db.(interface {
		BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
	})
	if !ok {
		return do(t.db)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if err = do(tx); err == nil {
		err = tx.Commit()
	}
	return err
}

//go:embed sqlite.sql
var sqliteSchema string

//go:embed postgresql.sql
var postgreSQLSchema string

// A dialect is what the databases do not have in common. Parameters of a statement are numbered
// in the order in which they occur, because some drivers of SQLite count them.
type dialect struct {
	schema    string
	columns   string // as they are read
	values    string // as they are written, without revoked and last_used
	lockTable string // keeps others from storing a key until the transaction ends
	micros    bool   // times are microseconds since 1970
}

var sqlite = dialect{
	schema:    sqliteSchema,
	columns:   `id, digest, last_four, name, owner, plan, quotas, limits, created, expires, revoked, last_used`,
	values:    `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10`,
	lockTable: `DELETE FROM keys WHERE false`, // as every write does
	micros:    true,
}

// Drivers differ in how they read and write arrays, and behind a pooler a bytea can be text of
// any form. JSON and hexadecimal digits are the same everywhere.
var postgreSQL = dialect{
	schema: postgreSQLSchema,
	columns: `id, encode(digest, 'hex'), last_four, name, owner, plan,
		array_to_json(quotas)::text, array_to_json(limits)::text, created, expires, revoked, last_used`,
	values: `$1, $2::bytea, $3, $4, $5, $6, ARRAY(SELECT json_array_elements_text($7::text::json)),
		ARRAY(SELECT json_array_elements_text($8::text::json)), $9::timestamptz, $10::timestamptz`,
	lockTable: `LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE`,
}

// time returns a time as an argument of a statement.
func (d *dialect) time(at time.Time) any {
	if d.micros && !at.IsZero() {
		return at.UnixMicro()
	}
	return sql.NullTime{Time: at.UTC().Truncate(time.Microsecond), Valid: !at.IsZero()}
}

// An instant scans a column with a time. NULL is the zero time.
type instant time.Time

func (i *instant) Scan(column any) error {
	switch column := column.(type) {
	case nil: // the zero time
	case int64:
		*i = instant(time.UnixMicro(column).UTC())
	case time.Time:
		*i = instant(column.UTC())
	default:
		return fmt.Errorf("a column of type %T is not a time", column)
	}
	return nil
}

// texts scans a column with a list in JSON. An empty list is nil.
type texts []string

func (t *texts) Scan(column any) error {
	text := fmt.Sprintf("%s", column) // of a string or of bytes
	if text == "[]" {                 // most keys
		return nil
	}
	return json.Unmarshal([]byte(text), (*[]string)(t))
}

func jsonOf(list []string) string {
	text, _ := json.Marshal(append([]string{}, list...)) // texts are always JSON
	return string(text)
}
