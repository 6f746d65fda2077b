package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A writer owns the one connection that writes. Its goroutine takes whatever
// writes are waiting, runs them in one transaction, and lets the callers go
// when that is committed.
type writer struct {
	conn     *sql.Conn
	maxBatch int
	check    func() error // before and after each transaction; set before the first job

	begin, commit, rollback  *sql.Stmt
	savepoint, release, undo *sql.Stmt
	prepared                 []*sql.Stmt // all there are

	jobs chan *job     // unbuffered: a job that was sent will be run
	quit chan struct{} // closed to end the goroutine
	done chan struct{} // closed when it has ended
	once sync.Once
}

// A job is one write, which takes place as a whole or not at all.
type job struct {
	do   func(context.Context) error
	err  error
	done chan struct{}
}

// errClosed is the answer to calls after Close.
var errClosed = fmt.Errorf("%w: closed", store.ErrUnavailable)

func newWriter(ctx context.Context, db *sql.DB, maxBatch int) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{
		conn:     conn,
		maxBatch: maxBatch,
		check:    func() error { return nil },
		jobs:     make(chan *job),
		quit:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.commit, "COMMIT"},
		{&w.rollback, "ROLLBACK"},
		{&w.savepoint, "SAVEPOINT job"},
		{&w.release, "RELEASE job"},
		{&w.undo, "ROLLBACK TO job"},
	} {
		if *p.stmt, err = w.PrepareContext(ctx, p.text); err != nil {
			return nil, errors.Join(err, w.giveBack())
		}
	}
	go w.loop()
	return w, nil
}

// PrepareContext prepares a statement for use in jobs.
func (w *writer) PrepareContext(ctx context.Context, text string) (*sql.Stmt, error) {
	stmt, err := w.conn.PrepareContext(ctx, text)
	if err == nil {
		w.prepared = append(w.prepared, stmt)
	}
	return stmt, err
}

// write runs do in a transaction and returns when that is committed, with do's
// error or the transaction's. do must use the context it is given: it is not
// the caller's, which may end at any time, while the transaction is also other
// callers'.
func (w *writer) write(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{do: do, done: make(chan struct{})}
	select {
	case w.jobs <- j:
		<-j.done
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return errClosed
	}
}

// close waits for the transaction under way and gives the connection back.
func (w *writer) close() error {
	w.once.Do(func() { close(w.quit) })
	<-w.done
	return w.giveBack()
}

// giveBack returns the connection to its pool. Package database/sql does not
// close the statements of a connection that is held, and SQLite does not close
// a file while there are any.
func (w *writer) giveBack() error {
	var errs []error
	for _, stmt := range w.prepared {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func (w *writer) loop() {
	defer close(w.done)
	batch := make([]*job, 0, w.maxBatch)
	for {
		select {
		case j := <-w.jobs:
			batch = append(batch[:0], j)
		case <-w.quit:
			return
		}
		batch = w.gather(batch)
		w.run(batch)
		for _, j := range batch {
			close(j.done)
		}
		clear(batch) // keeps nothing of the callers alive
	}
}

// gather adds the jobs that are waiting.
func (w *writer) gather(batch []*job) []*job {
	// The callers of the last batch are about to come back with their next
	// writes. To let them run first costs less than a microsecond if there are
	// none, and saves a sync if there are.
	runtime.Gosched()
	for len(batch) < w.maxBatch {
		select {
		case j := <-w.jobs:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// run commits the jobs together. If the transaction is lost to the fault of one
// of them, it tries each by itself, so that none fails for another.
func (w *writer) run(batch []*job) {
	if !w.transact(batch) && len(batch) > 1 {
		for i := range batch {
			w.transact(batch[i : i+1])
		}
	}
}

// transact runs the jobs in one transaction and sets their errors. It reports
// false if a job has brought the whole transaction down before the commit.
func (w *writer) transact(batch []*job) bool {
	// Not the callers' contexts: none of them may interrupt the others.
	ctx := context.Background()

	for _, j := range batch {
		j.err = nil // of an earlier attempt
	}
	if err := w.check(); err != nil {
		fail(batch, err)
		return true
	}
	if _, err := w.begin.ExecContext(ctx); err != nil {
		fail(batch, fmt.Errorf("begin: %w", err))
		return true
	}
	for _, j := range batch {
		var lost bool
		if j.err, lost = w.runJob(ctx, j); lost {
			fail(batch, j.err)
			w.rollback.ExecContext(ctx) // fails if SQLite has done so itself
			return false
		}
	}
	if _, err := w.commit.ExecContext(ctx); err != nil {
		fail(batch, fmt.Errorf("commit: %w", err))
		w.rollback.ExecContext(ctx)
		return true
	}
	// What was written to a file that is gone must not be acknowledged.
	if err := w.check(); err != nil {
		fail(batch, fmt.Errorf("after the commit: %w", err))
	}
	return true
}

// runJob runs one job in a savepoint, so that a job which fails leaves nothing
// behind. It reports whether the transaction around it is lost: SQLite rolls it
// back by itself when the disk is full or fails.
func (w *writer) runJob(ctx context.Context, j *job) (err error, lost bool) {
	if _, err := w.savepoint.ExecContext(ctx); err != nil {
		return err, true
	}
	err = j.do(ctx)
	if err != nil {
		if _, undoErr := w.undo.ExecContext(ctx); undoErr != nil {
			return err, true
		}
	}
	if _, releaseErr := w.release.ExecContext(ctx); releaseErr != nil {
		return errors.Join(err, releaseErr), true
	}
	return err, false
}

// fail gives the error to every job that has none of its own.
func fail(batch []*job, err error) {
	for _, j := range batch {
		if j.err == nil {
			j.err = err
		}
	}
}
