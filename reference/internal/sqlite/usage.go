package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
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
//
// Records are not rows, which would take a microsecond each to save and to load. A save
// adds one row with all records that have changed. [Usage.CompactUsage] writes as many
// bytes again, one part of the keys after the other, with all records of the part. A
// change that is older than all parts is deleted. So what is loaded is usually at most three
// times as much as the limiter has, and a megabyte.
type Usage struct {
	file
	closed atomic.Bool
	db     *sql.DB // one connection
	files  *openedFiles

	mu     sync.Mutex
	number int64            // of the last change
	since  [partCount]int64 // the last change that is in each part
	debt   int64            // bytes that were saved as changes and not made up for yet
}

// partCount is the number of parts, which divide the keys by their first byte.
const partCount = 256

func partOf(key uint64) int { return int(key >> 56) }

var _ store.Usage = (*Usage)(nil)

// ErrInUse is wrapped by the error of [OpenUsage] if another server has the file open,
// and by that of [Restore] if any process has.
var ErrInUse = errors.New("in use by another process")

// OpenUsage opens or creates the limiter state in the file at path, usually
// [UsagePath]. Of Options it uses only BusyTimeout: if another server still has the file
// open after that, it returns [ErrInUse]. Its other errors are like those of [Open].
func OpenUsage(ctx context.Context, path string, o Options) (_ *Usage, err error) {
	o = o.withDefaults()
	o.noCopy = true // the upgrade is one transaction, and usage is not kept for an older version
	u := &Usage{}
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
		// A save of everything leaves a log as large as that.
		"journal_size_limit(16777216)",
	); err != nil {
		return nil, err
	}
	if err = u.prepare(ctx, u.db, usageSchema, o); err != nil {
		return nil, err
	}
	if err = u.readNumbers(ctx); err != nil {
		return nil, u.explain("open", err)
	}
	if u.files, err = u.openedFiles(); err != nil {
		return nil, err
	}
	return u, nil
}

// readNumbers reads which changes each part has.
func (u *Usage) readNumbers(ctx context.Context) error {
	tx, err := u.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(number), 0) FROM changes`).Scan(&u.number); err != nil {
		return err
	}
	for row, err := range eachRow(ctx, tx, scanBlob, `SELECT part, since, x'' FROM parts`) {
		if err != nil {
			return err
		}
		u.since[row.part], u.number = row.number, max(u.number, row.number)
	}
	return nil
}

// SaveUsage stores what has changed. See [store.Usage].
func (u *Usage) SaveUsage(ctx context.Context, header []byte, records []memory.Record) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	data := appendRecords(make([]byte, 0, len(records)*(headSize+32)), records)
	u.number++ // a commit that returns an error may have stored the last one
	err := u.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO header (only, data) VALUES (1, ?)`, notNil(header)); err != nil || len(data) == 0 {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO changes (number, data) VALUES (?, ?)`, u.number, data)
		return err
	})
	if err == nil {
		u.debt += int64(len(data))
	}
	return u.wrap("save usage", err)
}

// smallestPart is what a part counts at least, in bytes, so that a few changes do not
// cause all parts of a small file to be written.
const smallestPart = 4096

// maxParts is how many parts are written after a save, at most, so that no save takes much
// longer than others. All parts are then written after eight saves.
const maxParts = partCount / 8

// CompactUsage writes parts until it has written as many bytes as were saved as changes.
// See [store.Usage].
func (u *Usage) CompactUsage(ctx context.Context, all func(first, last uint64) []memory.Record) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := ctx.Err(); err != nil || u.closed.Load() {
		return u.wrap("compact usage", cmp.Or(err, errClosed))
	}
	for n := 0; n < maxParts && u.debt > 0; n++ {
		if err := u.compactOldest(ctx, all); err != nil {
			return u.wrap("compact usage", err)
		}
	}
	return nil
}

// compactOldest writes the part that was not written for the longest time, and removes
// the changes that are in all parts now.
func (u *Usage) compactOldest(ctx context.Context, all func(first, last uint64) []memory.Record) error {
	since := u.since
	part := slices.Index(since[:], slices.Min(since[:]))
	since[part] = u.number
	first := uint64(part) << 56
	data := appendRecords(nil, all(first, first+(1<<56-1)))
	err := u.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO parts (part, since, data) VALUES (?, ?, ?)`, part, u.number, notNil(data)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM changes WHERE number <= ?`, slices.Min(since[:]))
		return err
	})
	if err != nil {
		return err
	}
	u.since = since
	u.debt -= max(int64(len(data)), smallestPart)
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

// LoadUsage reads all records, some rows ahead of load. See [store.Usage]. The other
// methods wait until it returns, so load must not call them.
func (u *Usage) LoadUsage(ctx context.Context, load func([]byte, iter.Seq[[]memory.Record]) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.wrap("load usage", u.load(ctx, load))
}

func (u *Usage) load(ctx context.Context, load func([]byte, iter.Seq[[]memory.Record]) error) error {
	tx, err := u.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()

	var header []byte
	err = tx.QueryRowContext(ctx, `SELECT data FROM header`).Scan(&header)
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

// A blob is a row with records.
type blob struct {
	part   uint8 // 0: of a change
	number int64 // of the change, or the last change that is in the part
	data   []byte
}

func scanBlob(row scanner) (b blob, err error) {
	err = row.Scan(&b.part, &b.number, &b.data)
	return b, err
}

// readPortions passes on the records of each row, until yield returns false.
func (u *Usage) readPortions(ctx context.Context, tx *sql.Tx, yield func([]memory.Record) bool) error {
	var since [partCount]int64 // by part
	u.debt = 0
	for row, err := range eachRow(ctx, tx, scanBlob, `SELECT part, since, data FROM parts ORDER BY part`) {
		if err != nil {
			return err
		}
		since[row.part] = row.number
		u.debt -= int64(len(row.data))
		if !yield(parseRecords(row.data, func(uint64) bool { return false })) {
			return nil
		}
	}
	for row, err := range eachRow(ctx, tx, scanBlob, `SELECT 0, number, data FROM changes ORDER BY number`) {
		if err != nil {
			return err
		}
		u.debt += int64(len(row.data))
		if !yield(parseRecords(row.data, func(key uint64) bool { return row.number <= since[partOf(key)] })) {
			return nil
		}
	}
	return nil
}

// notNil returns empty bytes instead of nil, which would be NULL.
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

// headSize is the size of a record without its data: the key, the expiry, and the length
// of the data.
const headSize = 8 + 4 + 4

// appendRecords appends records to a blob, as the schema describes it.
func appendRecords(b []byte, records []memory.Record) []byte {
	for _, r := range records {
		b = binary.BigEndian.AppendUint64(b, r.Key)
		b = binary.BigEndian.AppendUint32(b, uint32(min(max(r.Expires, 0), math.MaxUint32)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(r.Data)))
		b = append(b, r.Data...)
	}
	return b
}

// damaged is a record that no engine can read. It stands for the rest of a blob that is
// damaged.
var damaged = memory.Record{Key: math.MaxUint64, Expires: math.MaxUint32, Data: []byte{0}}

// parseRecords returns the records of a blob, which they share, except those with keys
// that skip reports.
func parseRecords(b []byte, skip func(key uint64) bool) []memory.Record {
	records := make([]memory.Record, 0, len(b)/32)
	for len(b) > 0 {
		if len(b) < headSize {
			return append(records, damaged)
		}
		r := memory.Record{Key: binary.BigEndian.Uint64(b), Expires: int64(binary.BigEndian.Uint32(b[8:]))}
		end := headSize + int64(binary.BigEndian.Uint32(b[12:]))
		if end > int64(len(b)) {
			return append(records, damaged)
		}
		r.Data, b = b[headSize:end:end], b[end:]
		if !skip(r.Key) {
			records = append(records, r)
		}
	}
	return records
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
