package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// presence finds out whether the files that were opened are still the ones that
// their paths name. SQLite does not: it goes on writing to a file that was deleted,
// and the next start finds nothing of it.
type presence struct {
	name  string // of the database, as given
	files []openFile
}

// An openFile is a file as it was when it was opened.
type openFile struct {
	path string
	info os.FileInfo
}

// watch notes which files the paths of f name now: the database and those of its
// companions that are there.
func (f file) watch() (*presence, error) {
	p := &presence{name: f.name}
	real := realPath(f.path)
	for _, path := range []string{f.path, real + "-wal", real + "-shm"} {
		info, err := os.Stat(path)
		switch {
		case err == nil:
			p.files = append(p.files, openFile{path, info})
		case path != f.path && errors.Is(err, fs.ErrNotExist):
			// Its companions are not always used.
		default:
			return nil, fmt.Errorf("open database %s: %w", f.name, withoutPath(err))
		}
	}
	return p, nil
}

// check returns an error that wraps [store.ErrUnavailable] if a file was deleted or
// replaced. It costs a system call for each file.
func (p *presence) check() error {
	for _, f := range p.files {
		info, err := os.Stat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return p.gone(f.path, "deleted")
		case err == nil && !os.SameFile(info, f.info):
			return p.gone(f.path, "replaced")
		}
		// A folder that cannot be looked into says nothing about the file.
	}
	return nil
}

func (p *presence) gone(path, what string) error {
	return fmt.Errorf("database %s: %w: the file %s was %s while this process has it open; "+
		"put the original file back, or restart to use the file that is there now", p.name, store.ErrUnavailable, path, what)
}
