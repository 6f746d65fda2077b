package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

const (
	headerText  = `SELECT data FROM header`
	partsText   = `SELECT part, since, data FROM parts ORDER BY part`
	changesText = `SELECT number, data FROM changes ORDER BY number`
)

// LoadUsage reads all records, some rows ahead of load. See [store.Usage]. The other
// methods wait until it returns, so load must not call them.
func (u *Usage) LoadUsage(ctx context.Context, load func([]byte, iter.Seq[[]memory.Record]) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.load(ctx, load); err != nil {
		return u.wrap("load usage", err)
	}
	return nil
}

func (u *Usage) load(ctx context.Context, load func([]byte, iter.Seq[[]memory.Record]) error) error {
	tx, err := u.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()

	var header []byte
	err = tx.QueryRowContext(ctx, headerText).Scan(&header)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		header = nil
	case err != nil:
		return err
	default:
		header = notNil(header)
	}

	portions := make(chan []memory.Record, 4)
	enough := make(chan struct{}) // closed when load needs no more
	ended := make(chan error, 1)
	go func() {
		defer close(portions)
		ended <- u.readPortions(ctx, tx, func(records []memory.Record) bool {
			select {
			case portions <- records:
				return true
			case <-enough:
				return false
			}
		})
	}()
	loadErr := load(header, func(yield func([]memory.Record) bool) {
		for portion := range portions {
			if !yield(portion) {
				return
			}
		}
	})
	close(enough)
	// An error of reading comes first: load may have failed because of it.
	if err := <-ended; err != nil {
		return err
	}
	return loadErr
}

// readPortions passes on the records of each row, until yield returns false.
func (u *Usage) readPortions(ctx context.Context, tx *sql.Tx, yield func([]memory.Record) bool) error {
	var since [partCount]int64 // by part
	u.debt = 0
	if more, err := readRows(ctx, tx, partsText, func(row scanner) (bool, error) {
		var part uint8
		var number int64
		var data []byte
		if err := row.Scan(&part, &number, &data); err != nil {
			return false, err
		}
		since[part] = number
		u.debt -= int64(len(data))
		return yield(parseRecords(data, func(uint64) bool { return false })), nil
	}); err != nil || !more {
		return err
	}
	_, err := readRows(ctx, tx, changesText, func(row scanner) (bool, error) {
		var number int64
		var data []byte
		if err := row.Scan(&number, &data); err != nil {
			return false, err
		}
		u.debt += int64(len(data))
		return yield(parseRecords(data, func(key uint64) bool { return number <= since[partOf(key)] })), nil
	})
	return err
}

// readRows calls read for each row of a query. It reports whether read asked for more to
// the end.
func readRows(ctx context.Context, tx *sql.Tx, text string, read func(scanner) (more bool, err error)) (more bool, err error) {
	rows, err := tx.QueryContext(ctx, text)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		if more, err := read(rows); err != nil || !more {
			return false, err
		}
	}
	return true, rows.Err()
}

// RenameDamaged renames the database file at path, which must not be open, and its
// log, so that a new file can be created and the old one can be examined. It returns
// the new name, which ends with the time.
func RenameDamaged(path string, now time.Time) (string, error) {
	aside := path + ".damaged-" + timestamp(now)
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("rename damaged database %s: %w", path, withoutPath(err))
	}
	// SQLite would apply a log that is left to the new file.
	err := os.Rename(path+"-wal", aside+"-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("rename the log of damaged database %s: %w", path, err)
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("rename the log of damaged database %s: %w", path, err)
	}
	return aside, nil
}
