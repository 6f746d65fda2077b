// Package sqlite stores the data of the service in a SQLite file. While it is open,
// SQLite has two files of its own beside it (-wal and -shm).
//
//	s, err := sqlite.Open(ctx, "petstore.db", sqlite.Options{})
//	…
//	defer s.Close()
//	pet, err := s.CreatePet(ctx, store.NewPet{Name: "Rex", CategoryID: 1})
//
// # Durability
//
// The database is in WAL mode with synchronous=FULL: a write is synced to the disk
// before it is acknowledged. A sync takes far longer than an insert, so writes that
// arrive during a transaction wait for it, and then share the next transaction and its
// sync. No write waits for others to arrive. Each write of a shared transaction has its
// own outcome.
//
// # Processes
//
// Any number of processes may have the file open, such as a server and the command
// that creates a key. Each sees what the others have committed. SQLite has one writer
// at a time: another one waits for five seconds at most. The file must be on a local
// disk, as WAL requires.
//
// [Store.PetsVersion] tells whether any of them has written since an earlier call, so that a
// server can keep what it has read.
//
// Writes to a file that was deleted or replaced while it is open would be lost without
// an error. Therefore writes and [Store.Ping] check that the paths still name the files
// that were opened, and fail until the original files are back.
//
// # Backups
//
// [Backup] copies the database while servers run. [Restore] replaces the content of a
// database that no process has open by the content of a backup, in one transaction, and makes no
// key valid again. [Export] reads everything in a file, for a move to PostgreSQL.
//
// # Upgrades
//
// A file of an older version is upgraded when it is opened, in atomic steps. Before that
// it is copied to a file beside it, such as petstore.db.v8-20261122T101500.000Z.backup;
// if that fails, the file is not changed. A file of a newer version or of another program is
// refused and not changed.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Options are optional settings of [Open] and [Migrate]. The zero value works.
type Options struct {
	// OnUpgrade is called before a file of an older version is upgraded, when the copy
	// of it is complete.
	OnUpgrade func(Upgrade)

	// NoMigrate refuses a file that is missing or of an older version, and changes
	// nothing. [Migrate] creates and upgrades it then.
	NoMigrate bool
}

// walLimit is the size in bytes to which the log shrinks again when it can begin anew. It
// grows beyond that while a reader needs it.
const walLimit = 4 << 20

// readers is the number of connections for reading.
const readers = 8

// busyTimeout is how long a call waits for another process that locks the file. Tests shorten it.
var busyTimeout = 5 * time.Second

// A Store is a database of pets, keys, the audit log and counted use in one file. [Open] returns
// one. It is safe for concurrent use.
type Store struct {
	file
	store.Tables
	before, schema int64 // versions of the schema: before it was opened, and now; 0: there was none

	closed  atomic.Bool
	writer  *writer
	reads   *prepared
	watch   *watch
	files   *openedFiles
	closers []func() error // in the order in which they were opened
}

var (
	_ store.Store         = (*Store)(nil)
	_ store.PetsVersioner = (*Store)(nil)
)

// Open opens the database in the file at path. It creates a file that does not exist and
// upgrades one of an older version. The directory must exist.
//
// Errors tell an operator what to do about a file that is not a database, that belongs
// to another program or a newer version, or that cannot be written.
func Open(ctx context.Context, path string, o Options) (_ *Store, err error) {
	s := &Store{}
	s.Tables = store.NewTables(store.SQLite, s.readTables, s.writeTables, s.writeTables)
	if s.file, err = o.openFile(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()

	writes, err := s.open(1, fmt.Sprintf("journal_size_limit(%d)", walLimit))
	if err != nil {
		return nil, err
	}
	if s.before, s.schema, err = s.prepare(ctx, writes, o); err != nil {
		return nil, err
	}
	if s.writer, err = newWriter(ctx, writes); err != nil {
		return nil, s.explain("open", err)
	}
	s.closers = append(s.closers, s.writer.close)
	reads, err := s.open(readers, "query_only(1)")
	if err != nil {
		return nil, err
	}
	s.reads = &prepared{on: reads}
	own, err := s.open(1, "query_only(1)")
	if err != nil {
		return nil, err
	}
	if s.watch, err = newWatch(own); err != nil {
		return nil, s.explain("open", err)
	}
	if s.files, err = s.openedFiles(); err != nil {
		return nil, err
	}
	s.writer.check, s.writer.committed = s.files.check, s.watch.committed
	return s, nil
}

// readTables is a [store.Call].
func (s *Store) readTables(ctx context.Context, doing string, do func(context.Context, sqlkeys.DB) error) error {
	return s.wrap(doing, do(ctx, s.reads))
}

// writeTables is a [store.Call].
func (s *Store) writeTables(ctx context.Context, doing string, do func(context.Context, sqlkeys.DB) error) error {
	return s.write(ctx, doing, func(ctx context.Context) error { return do(ctx, &s.writer.prepared) })
}

// open returns a pool of connections that Close closes.
func (s *Store) open(n int, pragmas ...string) (*sql.DB, error) {
	db, err := s.connect(n, pragmas...)
	if err == nil {
		s.closers = append(s.closers, db.Close)
	}
	return db, err
}

// CreatePet implements [store.Pets]. The CreatePet of [store.Tables] has a RETURNING clause, with
// which SQLite stores a third fewer pets a second.
func (s *Store) CreatePet(ctx context.Context, p store.NewPet) (pet store.Pet, err error) {
	if err := p.Validate(); err != nil {
		return store.Pet{}, err
	}
	pet = store.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: cmp.Or(p.Status, store.Available)}
	err = s.write(ctx, "create pet", func(ctx context.Context) error {
		result, err := s.writer.exec(ctx, insertPetText, pet.Name, pet.CategoryID, string(pet.Status))
		if err != nil {
			return err
		}
		pet.ID, err = result.LastInsertId()
		return err
	})
	if err != nil {
		return store.Pet{}, err
	}
	return pet, nil
}

const insertPetText = `INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)`

// Ping returns an error if the database cannot be read, or if its files are not where
// they were opened.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.files.check(); err != nil && !s.closed.Load() {
		return s.wrap("read", err)
	}
	var exists bool
	return s.wrap("read", s.reads.row(ctx, "SELECT EXISTS (SELECT 1 FROM pets)", nil, &exists))
}

// Close waits for running calls and closes the file. Later calls fail with
// [store.ErrUnavailable]. A second Close does nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- { // the last connection moves the log into the file
		errs = append(errs, s.closers[i]())
	}
	if err := errors.Join(errs...); err != nil {
		return s.explain("close", err)
	}
	return nil
}

// wrap adds to the error of a call, if there is one, what the call was doing.
func (s *Store) wrap(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case code(err) != sqlite3.SQLITE_OK:
		return explain(doing+": database "+s.name, err)
	case s.closed.Load() && !errors.Is(err, store.ErrUnavailable):
		// The error of database/sql cannot be tested for.
		return fmt.Errorf("%s: %w", doing, errClosed)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// prepared runs statements that it prepares once. They live as long as what they run on.
type prepared struct {
	on interface {
		PrepareContext(context.Context, string) (*sql.Stmt, error)
	}

	mu         sync.Mutex
	statements map[string]*sql.Stmt // by text
}

func (p *prepared) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stmt, ok := p.statements[text]; ok {
		return stmt, nil
	}
	stmt, err := p.on.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if p.statements == nil {
		p.statements = map[string]*sql.Stmt{}
	}
	p.statements[text] = stmt
	return stmt, nil
}

func (p *prepared) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	stmt, err := p.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// row reads the columns of one row.
func (p *prepared) row(ctx context.Context, text string, args []any, into ...any) error {
	stmt, err := p.statement(ctx, text)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(ctx, args...).Scan(into...)
}

// QueryContext implements [sqlkeys.DB].
func (p *prepared) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	stmt, err := p.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// close closes the statements. Package database/sql does not close the statements of a connection in
// use, and SQLite does not close a file that has open statements.
func (p *prepared) close() error {
	var errs []error
	for _, stmt := range p.statements {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}
