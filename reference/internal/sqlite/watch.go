package sqlite

import (
	"database/sql"
	"sync"
	"sync/atomic"
	"time"
)

// PetsVersion returns a number that changes immediately with each commit of this store, and
// within 10 milliseconds with each commit of others, whatever was written. See
// [store.PetsVersioner].
func (s *Store) PetsVersion() (version uint64, ok bool) { return s.watch.now() }

// askInterval is the time between two questions of a watch. Each takes some microseconds
// and one caller at a time, so that not every request can ask.
const askInterval = 10 * time.Millisecond

// A watch notices commits: those of this store are reported to it, and SQLite knows those of
// others.
type watch struct {
	db      *sql.DB // one connection that does nothing else: what it commits is not counted
	opened  time.Time
	version atomic.Uint64
	asked   atomic.Int64 // nanoseconds after opened

	asking sync.Mutex
	last   int64 // the answer; needs asking
}

func newWatch(db *sql.DB) (*watch, error) {
	w := &watch{db: db, opened: time.Now()}
	return w, w.ask()
}

// committed is called after a commit, and before it is acknowledged.
func (w *watch) committed() { w.version.Add(1) }

func (w *watch) now() (version uint64, ok bool) {
	if time.Since(w.opened)-time.Duration(w.asked.Load()) >= askInterval && w.asking.TryLock() {
		defer w.asking.Unlock()
		if w.ask() != nil {
			return 0, false
		}
	}
	return w.version.Load(), true
}

// ask asks SQLite whether others have committed. It needs asking.
func (w *watch) ask() error {
	at := time.Since(w.opened)
	var answer int64
	if err := w.db.QueryRow("PRAGMA data_version").Scan(&answer); err != nil {
		return err
	}
	if answer != w.last {
		w.last = answer
		w.version.Add(1)
	}
	w.asked.Store(int64(at))
	return nil
}
