package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// UsagePath returns where the limiter state that belongs to a database is kept:
// beside it, in the same folder. Symbolic links are followed, as SQLite does for its
// own companions, so that two names of one database lead to one state.
func UsagePath(database string) string { return realPath(database) + "-usage" }

// Usage is the state of the embedded rate limiter in a file of its own. It is
// made by [OpenUsage] and safe for concurrent use.
//
// It is in WAL mode with synchronous=NORMAL: a save is handed to the operating
// system at once and synced now and then, which is what [store.Usage] promises.
// The file is locked while it is open, because two limiters that save over each
// other would lose each other's usage. Deleting the file while no server has it
// open resets all quotas and ends all bans, and loses nothing else.
type Usage struct {
	file
	closed atomic.Bool
	db     *sql.DB // one connection
	files  *openedFiles

	header, setHeader  *sql.Stmt
	all, set, drop     *sql.Stmt
	portion, dropStale *sql.Stmt

	mu     sync.Mutex
	pruned int64 // the last key that PruneUsage has looked at
}

var _ store.Usage = (*Usage)(nil)

// ErrInUse is wrapped by the error of [OpenUsage] if another server has the file
// open.
var ErrInUse = errors.New("in use by another server")

// OpenUsage opens the limiter state in the file at path, usually
// [UsagePath], or makes it. Of Options it uses only BusyTimeout: how long it waits
// for a server that has the file open to end, before it returns [ErrInUse].
// Its other errors are like those of [Open].
func OpenUsage(ctx context.Context, path string, o Options) (_ *Usage, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	u := &Usage{pruned: math.MinInt64}
	if u.file, err = newFile(path, o.BusyTimeout); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			u.Close()
		}
		if isBusy(err) {
			err = fmt.Errorf("%w: %w", ErrInUse, err)
		}
	}()

	if u.db, err = u.connect(1,
		"synchronous(NORMAL)",
		"locking_mode(EXCLUSIVE)",
		// A save of everything leaves a log as large as the table.
		"journal_size_limit(16777216)",
	); err != nil {
		return nil, err
	}
	if err = u.prepare(ctx, u.db, usageSchema); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&u.header, `SELECT data FROM header`},
		{&u.setHeader, `INSERT OR REPLACE INTO header (only, data) VALUES (1, ?)`},
		{&u.all, loadPortionText},
		{&u.set, `INSERT OR REPLACE INTO usage (key, expires, data) VALUES (?, ?, ?)`},
		{&u.drop, `DELETE FROM usage WHERE key = ?`},
		{&u.portion, `SELECT max(key), count(*) FROM (SELECT key FROM usage WHERE key > ? ORDER BY key LIMIT ?)`},
		{&u.dropStale, `DELETE FROM usage WHERE key > ? AND key <= ? AND expires <= ?`},
	} {
		if *p.stmt, err = u.db.PrepareContext(ctx, p.text); err != nil {
			return nil, u.explain("open", err)
		}
	}
	if u.files, err = u.openedFiles(); err != nil {
		return nil, err
	}
	return u, nil
}

// SaveUsage stores what has changed. See [store.Usage].
func (u *Usage) SaveUsage(ctx context.Context, header []byte, records []memory.Record) error {
	// In the order of the table, each page of it is found once and written once.
	// Of records with one key the last still comes last.
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b memory.Record) int { return cmp.Compare(int64(a.Key), int64(b.Key)) })

	err := u.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.StmtContext(ctx, u.setHeader).ExecContext(ctx, notNil(header)); err != nil {
			return err
		}
		set, drop := tx.StmtContext(ctx, u.set), tx.StmtContext(ctx, u.drop)
		for _, r := range records {
			var err error
			if len(r.Data) > 0 {
				_, err = set.ExecContext(ctx, int64(r.Key), r.Expires, r.Data)
			} else {
				_, err = drop.ExecContext(ctx, int64(r.Key))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return u.wrap("save usage", err)
	}
	return nil
}

// pruneStep is how many records a call of PruneUsage looks at.
const pruneStep = 4096

// PruneUsage removes some of what has expired. See [store.Usage].
func (u *Usage) PruneUsage(ctx context.Context, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	next := int64(math.MinInt64) // again from the first
	err := u.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var last sql.NullInt64
		var n int
		if err := tx.StmtContext(ctx, u.portion).QueryRowContext(ctx, u.pruned, pruneStep).Scan(&last, &n); err != nil || n == 0 {
			return err
		}
		if n == pruneStep {
			next = last.Int64
		}
		_, err := tx.StmtContext(ctx, u.dropStale).ExecContext(ctx, u.pruned, last.Int64, now.Unix())
		return err
	})
	if err != nil {
		return u.wrap("prune usage", err)
	}
	u.pruned = next
	return nil
}

// change runs do in a transaction. Once begun it goes through, whatever becomes
// of the caller's context: the driver watches a context that can end with a
// goroutine for each statement.
func (u *Usage) change(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := u.files.check(); err != nil && !u.closed.Load() {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := u.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if err := do(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return u.files.check()
}

// notNil keeps an empty header apart from none.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Close waits for the calls under way and closes the file. Calls that come
// later fail with [store.ErrUnavailable]. A second Close does nothing.
func (u *Usage) Close() error {
	if u.closed.Swap(true) || u.db == nil {
		return nil
	}
	if err := u.db.Close(); err != nil {
		return u.explain("close", err)
	}
	return nil
}

// wrap says what was being done when a call came to nothing.
func (u *Usage) wrap(doing string, err error) error { return wrap(u.file, &u.closed, doing, err) }
