package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A Store is a database of pets, keys, the audit log and counted use in one file. [Open] returns
// one. It is safe for concurrent use.
type Store struct {
	file
	closed atomic.Bool
	writes *sql.DB // one connection, which writer holds
	reads  *sql.DB
	writer *writer
	files  *openedFiles
	index  *walIndex

	ping, pet, listPets, listStatus                *sql.Stmt // read
	keyByDigest, keyByID, listKeys                 *sql.Stmt
	listUse, listDays, listAudit                   *sql.Stmt
	listPetsNow, listStatusNow                     *sql.Stmt // run by the writer, as all that follow
	insertPet, firstPet, insertOnce, pruneOnce     *sql.Stmt
	insertKey, anyKey, keyNow, revokeKey           *sql.Stmt
	endKeyAt                                       *sql.Stmt
	addUse, addUseDay, pruneUse, addDay, pruneDays *sql.Stmt
	addAudit                                       *sql.Stmt
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
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Store{}
	if s.file, err = o.openFile(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()

	if s.writes, err = s.connect(1, "synchronous(FULL)"); err != nil {
		return nil, err
	}
	if err = s.prepare(ctx, s.writes, mainSchema, o); err != nil {
		return nil, err
	}
	if s.writer, err = newWriter(ctx, s.writes, o.MaxBatch); err != nil {
		return nil, s.explain("open", err)
	}
	if s.reads, err = s.connect(o.Readers, "query_only(1)"); err != nil {
		return nil, err
	}
	if err = s.prepareStatements(ctx); err != nil {
		return nil, s.explain("open", err)
	}
	if s.files, err = s.openedFiles(); err != nil {
		return nil, err
	}
	s.writer.check = s.files.check
	if s.index, err = s.openWALIndex(); err != nil {
		return nil, err
	}
	return s, nil
}

// prepareStatements prepares all statements. They live as long as their connections.
func (s *Store) prepareStatements(ctx context.Context) error {
	for _, p := range []struct {
		on interface {
			PrepareContext(context.Context, string) (*sql.Stmt, error)
		}
		stmt **sql.Stmt
		text string
	}{
		{s.reads, &s.ping, "SELECT 1 FROM pets LIMIT 1"},
		{s.reads, &s.pet, petText},
		{s.reads, &s.listPets, listPetsText},
		{s.reads, &s.listStatus, listStatusText},
		{s.reads, &s.keyByDigest, keyByDigestText},
		{s.reads, &s.listKeys, listKeysText},
		{s.reads, &s.keyByID, keyByIDText},
		{s.reads, &s.listUse, listUseText},
		{s.reads, &s.listDays, listDaysText},
		{s.reads, &s.listAudit, listAuditText},
		{s.writer, &s.listPetsNow, listPetsText},
		{s.writer, &s.listStatusNow, listStatusText},
		{s.writer, &s.insertPet, insertPetText},
		{s.writer, &s.firstPet, firstPetText},
		{s.writer, &s.insertOnce, insertOnceText},
		{s.writer, &s.pruneOnce, pruneOnceText},
		{s.writer, &s.insertKey, insertKeyText},
		{s.writer, &s.anyKey, anyKeyText},
		{s.writer, &s.keyNow, keyByIDText},
		{s.writer, &s.revokeKey, revokeKeyText},
		{s.writer, &s.endKeyAt, endKeyAtText},
		{s.writer, &s.addUse, addUseText},
		{s.writer, &s.addUseDay, addUseDayText},
		{s.writer, &s.pruneUse, pruneUseText},
		{s.writer, &s.addDay, addDayText},
		{s.writer, &s.pruneDays, pruneDaysText},
		{s.writer, &s.addAudit, addAuditText},
	} {
		var err error
		if *p.stmt, err = p.on.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

// Ping returns an error if the database cannot be read, or if its files are not where
// they were opened.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.files.check(); err != nil && !s.closed.Load() {
		return s.wrap("read", err)
	}
	var one int
	if err := s.ping.QueryRowContext(ctx).Scan(&one); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return s.wrap("read", err)
	}
	return nil
}

// PetsVersion returns a number that changes with each commit to the file, by any process
// and whatever it is about. It takes some 100 nanoseconds. See [store.PetsVersioner].
func (s *Store) PetsVersion() (version uint64, ok bool) { return s.index.version() }

// Close waits for running calls and closes the file. Later calls fail with
// [store.ErrUnavailable]. A second Close does nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	var errs []error
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.reads != nil {
		errs = append(errs, s.reads.Close())
	}
	if s.index != nil {
		errs = append(errs, s.index.close())
	}
	// Last, because the last connection moves the log into the file.
	if s.writes != nil {
		errs = append(errs, s.writes.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return s.explain("close", err)
	}
	return nil
}

// wrap adds to the error of a call what the call was doing.
func (s *Store) wrap(doing string, err error) error { return wrap(s.file, &s.closed, doing, err) }
