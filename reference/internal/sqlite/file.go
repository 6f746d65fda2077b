package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A file is a database file.
type file struct {
	name string // as given, for messages
	path string // absolute
}

// newFile returns the file at path, whether or not there is one.
func newFile(path string) (file, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return file{}, fmt.Errorf("database %s: %w", path, err)
	}
	return file{path, abs}, nil
}

// existingFile returns the regular file at path. Its error wraps [fs.ErrNotExist] if there is
// none.
func existingFile(path string) (file, error) {
	f, err := newFile(path)
	if err == nil {
		err = f.checkRegular()
	}
	return f, err
}

// openFile returns the file that Open opens. It creates one unless the options forbid
// that.
func (o Options) openFile(path string) (file, error) {
	f, err := existingFile(path)
	switch {
	case err == nil:
		return f, f.checkAccess()
	case !errors.Is(err, fs.ErrNotExist):
		return f, err
	case o.NoMigrate:
		return f, fmt.Errorf("database %s does not exist, and migrate is manual; create it with petstore migrate", path)
	}
	return f, f.create()
}

// create makes an empty file, unless another process does at the same time. Only its owner can
// read it, and SQLite gives its companions the same mode.
func (f file) create() error {
	// A file that exists is not opened here: closing it would release all of SQLite's locks
	// on it in this process.
	created, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return f.checkRegular()
	}
	if err == nil {
		err = created.Close()
	}
	if err != nil {
		return fmt.Errorf("create database %s: cannot write in the directory %s: %w", f.name, filepath.Dir(f.path), withoutPath(err))
	}
	return nil
}

// at returns another file, which messages call by the same name.
func (f file) at(path string) file {
	f.path = path
	return f
}

func (f file) checkRegular() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("open database %s: %w", f.name, withoutPath(err))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("open database %s: it is not a regular file", f.name)
	}
	return nil
}

// checkAccess returns an error if this user may not write to the file. SQLite would only
// find that out after it has created companions, which then belong to this user.
func (f file) checkAccess() error {
	if err := canWrite(f.path); err != nil {
		return cannotWrite("open database "+f.name, err)
	}
	return nil
}

// realPath returns path without symbolic links, or path itself if it does not exist.
func realPath(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// connect returns a pool of at most n connections. Each runs the common pragmas and then
// the given ones.
func (f file) connect(n int, pragmas ...string) (*sql.DB, error) {
	return f.pool(n, f.dsn("rw", pragmas...))
}

// connectReadOnly returns one connection that changes nothing on the disk. Without a log
// or a journal beside it, the file must not change while it is open.
func (f file) connectReadOnly() (*sql.DB, error) {
	dsn := f.dsn("ro")
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Stat(realPath(f.path) + suffix); err == nil {
			return f.pool(1, dsn) // part of the content is there
		}
	}
	// Otherwise a file in WAL mode could not be opened in a read-only directory.
	return f.pool(1, dsn+"&immutable=1")
}

func (f file) pool(n int, dsn string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", f.name, err)
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// dsn returns the name of the file for the driver, with a mode (rw or ro) and the pragmas that
// each connection runs after the common ones.
func (f file) dsn(mode string, pragmas ...string) string {
	parameters := url.Values{
		"mode": {mode},
		"_pragma": append([]string{
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
			"trusted_schema(0)",
			"foreign_keys(1)",
			"synchronous(FULL)",
			// On macOS, fsync alone leaves data in the cache of the drive.
			"fullfsync(1)",
			"checkpoint_fullfsync(1)",
		}, pragmas...),
		"_txlock":    {"immediate"},
		"_dqs":       {"0"}, // "name" is a name, never a string
		"_defensive": {"1"},
		"_error_rc":  {"1"}, // no error text of another call
	}
	path := filepath.ToSlash(f.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: parameters.Encode()}).String()
}

// snapshot calls do with a connection that sees the file as of one instant.
func (f file) snapshot(ctx context.Context, db *sql.DB, do func(*sql.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return f.explain("open", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return f.explain("open", err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return do(conn)
}

// useWAL sets the journal mode of the file to write-ahead log. SQLite waits for other processes
// by itself, except where it suspects a deadlock, such as when two of them both turn on the log
// of a new file.
func (f file) useWAL(ctx context.Context, db *sql.DB) error {
	const pause = 10 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		var mode string
		err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		switch {
		case isBusy(err) && waited < busyTimeout:
			time.Sleep(pause)
		case err != nil:
			return f.explain("open", err)
		case mode != "wal":
			return fmt.Errorf("open database %s: it does not support a write-ahead log; move it to a local disk", f.name)
		default:
			return nil
		}
	}
}

// openedFiles are the files of a database as they were when it was opened. Their
// paths must keep naming the same files: SQLite continues to write to a file that was
// deleted, and the next start does not find what was written.
type openedFiles struct {
	name  string // of the database, as given
	files map[string]os.FileInfo
}

// openedFiles returns the files that the paths of f name now: the database and its
// companions, if they exist.
func (f file) openedFiles() (*openedFiles, error) {
	p := &openedFiles{f.name, map[string]os.FileInfo{}}
	resolved := realPath(f.path)
	for _, path := range []string{f.path, resolved + "-wal", resolved + "-shm"} {
		info, err := os.Stat(path)
		switch {
		case err == nil:
			p.files[path] = info
		case path != f.path && errors.Is(err, fs.ErrNotExist):
			// SQLite does not always use the companions.
		default:
			return nil, fmt.Errorf("open database %s: %w", f.name, withoutPath(err))
		}
	}
	return p, nil
}

// check returns an error that wraps [store.ErrUnavailable] if a file was deleted or
// replaced. It costs a system call for each file.
func (p *openedFiles) check() error {
	for path, opened := range p.files {
		what := ""
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			what = "deleted"
		case err == nil && !os.SameFile(info, opened):
			what = "replaced"
		default: // another error, such as that of an unreadable folder, says nothing about the file
			continue
		}
		return fmt.Errorf("database %s: %w: the file %s was %s while this process has it open; "+
			"put the original file back, or restart to use the file that is there now", p.name, store.ErrUnavailable, path, what)
	}
	return nil
}
