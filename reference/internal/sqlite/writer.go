package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// maxBatch is the largest number of writes in one transaction.
const maxBatch = 256

// A writer owns the only connection that writes. Its goroutine runs all waiting writes
// in one transaction, and the calls return when it is committed.
type writer struct {
	prepared
	conn *sql.Conn

	// Set before the first job.
	check     func() error // before and after each transaction
	committed func()       // after each transaction

	jobs chan *job     // unbuffered: a job that was sent will be run
	quit chan struct{} // closed to end the goroutine
	done chan struct{} // closed when the goroutine has ended
}

// A job is one atomic write.
type job struct {
	do   func(context.Context) error
	err  error
	done chan struct{}
}

// errClosed is the error of calls after Close.
var errClosed = fmt.Errorf("%w: closed", store.ErrUnavailable)

func newWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{
		prepared: prepared{on: conn},
		conn:     conn,
		jobs:     make(chan *job),
		quit:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	go w.loop()
	return w, nil
}

// write runs do in a transaction and returns once it is committed, with the error of do
// or of the transaction. It may run do again if nothing was stored. do must use the context
// that it gets: that of the caller can end at any time, and the transaction belongs to other
// callers too.
func (s *Store) write(ctx context.Context, doing string, do func(context.Context) error) error {
	return s.wrap(doing, s.writer.submit(ctx, &job{do: do, done: make(chan struct{})}))
}

// submit waits until j was run.
func (w *writer) submit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
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

// close waits for the running transaction and returns the connection to its pool.
func (w *writer) close() error {
	close(w.quit)
	<-w.done
	return errors.Join(w.prepared.close(), w.conn.Close())
}

func (w *writer) loop() {
	defer close(w.done)
	batch := make([]*job, 0, maxBatch)
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
		clear(batch) // so that the jobs can be collected
	}
}

// gather adds the jobs that are waiting.
func (w *writer) gather(batch []*job) []*job {
	// The callers of the last batch may be about to send their next writes. Letting
	// them run first saves a sync, and costs less than a microsecond if there are none.
	runtime.Gosched()
	for len(batch) < maxBatch {
		select {
		case j := <-w.jobs:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// run commits the jobs together. A job that fails undoes the transaction: then the others are
// run again without it, and at last each that failed alone, so that no job fails because of
// another. If the transaction itself fails, all that are left do, so that they wait for the lock
// of another process only once.
func (w *writer) run(batch []*job) {
	var alone []*job
	for len(batch) > 0 {
		failed, err := w.transact(batch)
		if err != nil {
			fail(batch, err)
			fail(alone, err)
			return
		}
		if failed == nil {
			break
		}
		if len(batch) > 1 {
			alone = append(alone, failed)
		}
		batch = slices.DeleteFunc(slices.Clone(batch), func(j *job) bool { return j == failed })
	}
	for i := range alone {
		if _, err := w.transact(alone[i : i+1]); err != nil {
			fail(alone[i:], err)
			return
		}
	}
}

// transact runs the jobs in one transaction and sets their errors. It returns the job that
// failed, if one did, or the error of the transaction; nothing is stored then, unless the error
// says otherwise.
func (w *writer) transact(batch []*job) (failed *job, err error) {
	// Not the context of a caller, which must not interrupt the other callers.
	ctx := context.Background()

	if err := w.check(); err != nil {
		return nil, err
	}
	if _, err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	for _, j := range batch {
		if j.err = j.do(ctx); j.err != nil {
			w.exec(ctx, "ROLLBACK") // fails if SQLite has rolled back, as on a full disk
			return j, nil
		}
	}
	_, err = w.exec(ctx, "COMMIT")
	w.committed() // even if it failed: its outcome can be unknown
	if err != nil {
		w.exec(ctx, "ROLLBACK")
		return nil, fmt.Errorf("commit: %w", err)
	}
	// A write to a file that was deleted must not be acknowledged.
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("after the commit: %w", err)
	}
	return nil, nil
}

// fail sets the error of every job.
func fail(batch []*job, err error) {
	for _, j := range batch {
		j.err = err
	}
}
