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

// UsagePath returns the path of the limiter state of a database, which is in the same
// directory. Symbolic links are followed, as SQLite does for its own companions, so two
// names of one database have one state.
func UsagePath(database string) string { return realPath(database) + "-usage" }

// Usage is the state of the embedded rate limiter in a file of its own. [OpenUsage]
// returns one. It is safe for concurrent use.
//
// The file is in WAL mode with synchronous=NORMAL: a save is passed to the operating
// system at once and synced from time to time, as [store.Usage] promises. The file is
// locked while it is open, because two limiters would overwrite each other's usage.
// Deleting it while no server has it open resets all quotas and ends all bans.
type Usage struct {
	file
	closed atomic.Bool
	db     *sql.DB // one connection
	files  *openedFiles

	header, setHeader  *sql.Stmt
	all, set, drop     *sql.Stmt
	portion, dropStale *sql.Stmt

	mu     sync.Mutex
	pruned int64 // the last key that PruneUsage has checked
}

var _ store.Usage = (*Usage)(nil)

// ErrInUse is wrapped by the error of [OpenUsage] if another server has the file open,
// and by that of [Restore] if any process has.
var ErrInUse = errors.New("in use by another process")

// OpenUsage opens or creates the limiter state in the file at path, usually
// [UsagePath]. Of Options it uses only BusyTimeout: if another server still has the file
// open after that, it returns [ErrInUse]. Its other errors are like those of [Open].
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
	if err = u.prepare(ctx, u.db, usageSchema, o); err != nil {
		return nil, err
	}
	if err = u.prepareToLoad(ctx); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&u.setHeader, `INSERT OR REPLACE INTO header (only, data) VALUES (1, ?)`},
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
	// In the order of the table, each of its pages is found and written once. The sort
	// is stable, so the last of the records with one key stays the last.
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

// pruneStep is how many records a call of PruneUsage checks.
const pruneStep = 4096

// PruneUsage removes some expired records. See [store.Usage].
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

// change runs do in a transaction. Once begun, the end of the context does not interrupt
// it: for a context that can end, the driver starts a goroutine for each statement.
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

// notNil returns an empty header instead of nil, which means that there is none.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Close waits for running calls and closes the file. Later calls fail with
// [store.ErrUnavailable]. A second Close does nothing.
func (u *Usage) Close() error {
	if u.closed.Swap(true) || u.db == nil {
		return nil
	}
	if err := u.db.Close(); err != nil {
		return u.explain("close", err)
	}
	return nil
}

// wrap adds to the error of a call what the call was doing.
func (u *Usage) wrap(doing string, err error) error { return wrap(u.file, &u.closed, doing, err) }
