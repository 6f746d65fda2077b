package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

const headerText = `SELECT data FROM header`

// loadPortionText reads many records as one row. A row costs a microsecond in the
// driver. For a million rows that is as long as everything else together.
const loadPortionText = `SELECT count(*), max(key), group_concat(key), group_concat(expires), group_concat(hex(data))
	FROM (SELECT key, expires, data FROM usage WHERE key >= ? ORDER BY key LIMIT ?)`

// loadStep is the number of records in a portion.
const loadStep = 4096

// LoadUsage reads all records, one portion ahead of load. See [store.Usage]. SaveUsage
// waits until it returns, so load must not call SaveUsage.
func (u *Usage) LoadUsage(ctx context.Context, load func([]byte, iter.Seq[memory.Record]) error) error {
	if err := u.load(ctx, load); err != nil {
		return u.wrap("load usage", err)
	}
	return nil
}

// LoadUsageToCheck is [Usage.LoadUsage] for the file at path, which [CheckUsage] has found
// sound and of the latest schema. It changes nothing. If a server has the file open, the
// error wraps [ErrInUse].
func LoadUsageToCheck(ctx context.Context, path string, o Options, load func([]byte, iter.Seq[memory.Record]) error) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	u := &Usage{}
	if u.file, err = existingFile(path, o.withDefaults().BusyTimeout); err != nil {
		return err
	}
	if u.db, err = u.connectToCheck(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	err = u.prepareToLoad(ctx)
	if err == nil {
		err = u.LoadUsage(ctx, load)
	}
	if isBusy(err) {
		err = fmt.Errorf("%w: %w", ErrInUse, err)
	}
	return err
}

// prepareToLoad prepares the statements of LoadUsage.
func (u *Usage) prepareToLoad(ctx context.Context) (err error) {
	if u.header, err = u.db.PrepareContext(ctx, headerText); err == nil {
		u.all, err = u.db.PrepareContext(ctx, loadPortionText)
	}
	if err != nil {
		return u.explain("open", err)
	}
	return nil
}

func (u *Usage) load(ctx context.Context, load func([]byte, iter.Seq[memory.Record]) error) error {
	tx, err := u.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()

	var header []byte
	err = tx.StmtContext(ctx, u.header).QueryRowContext(ctx).Scan(&header)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		header = nil
	case err != nil:
		return err
	default:
		header = notNil(header)
	}

	portions := make(chan []memory.Record, 1)
	enough := make(chan struct{}) // closed when load needs no more
	ended := make(chan error, 1)
	go func() {
		defer close(portions)
		ended <- u.readPortions(ctx, tx, portions, enough)
	}()
	loadErr := load(header, func(yield func(memory.Record) bool) {
		for portion := range portions {
			for _, r := range portion {
				if !yield(r) {
					return
				}
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

// readPortions sends all records in order of their keys.
func (u *Usage) readPortions(ctx context.Context, tx *sql.Tx, portions chan<- []memory.Record, enough <-chan struct{}) error {
	stmt := tx.StmtContext(ctx, u.all)
	for from := int64(math.MinInt64); ; {
		var n int
		var last sql.NullInt64
		var keys, expires, data sql.NullString
		if err := stmt.QueryRowContext(ctx, from, loadStep).Scan(&n, &last, &keys, &expires, &data); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		portion, err := parsePortion(n, keys.String, expires.String, data.String)
		if err != nil {
			return err
		}
		select {
		case portions <- portion:
		case <-enough:
			return nil
		}
		if n < loadStep || last.Int64 == math.MaxInt64 {
			return nil
		}
		from = last.Int64 + 1
	}
}

// parsePortion parses the lists of n records.
func parsePortion(n int, keys, expires, data string) ([]memory.Record, error) {
	portion := make([]memory.Record, 0, n)
	raw := make([]byte, 0, len(data)/2) // of all the records
	for range n {
		var key, expiry, text string
		key, keys, _ = strings.Cut(keys, ",")
		expiry, expires, _ = strings.Cut(expires, ",")
		text, data, _ = strings.Cut(data, ",")
		k, keyErr := strconv.ParseInt(key, 10, 64)
		e, expiryErr := strconv.ParseInt(expiry, 10, 64)
		begin := len(raw)
		var dataErr error
		raw, dataErr = hex.AppendDecode(raw, []byte(text))
		if err := errors.Join(keyErr, expiryErr, dataErr); err != nil {
			return nil, fmt.Errorf("a list of records is damaged: %w", err)
		}
		portion = append(portion, memory.Record{Key: uint64(k), Expires: e, Data: raw[begin:len(raw):len(raw)]})
	}
	return portion, nil
}
