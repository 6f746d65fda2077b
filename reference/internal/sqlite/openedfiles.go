package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// openedFiles are the files of a database as they were when it was opened. Their
// paths must keep naming the same files: SQLite continues to write to a file that was
// deleted, and the next start does not find what was written.
type openedFiles struct {
	name  string // of the database, as given
	files []openedFile
}

// An openedFile is one of them.
type openedFile struct {
	path string
	info os.FileInfo
}

// openedFiles returns the files that the paths of f name now: the database and its
// companions, if they exist.
func (f file) openedFiles() (*openedFiles, error) {
	p := &openedFiles{name: f.name}
	real := realPath(f.path)
	for _, path := range []string{f.path, real + "-wal", real + "-shm"} {
		info, err := os.Stat(path)
		switch {
		case err == nil:
			p.files = append(p.files, openedFile{path, info})
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
	for _, f := range p.files {
		info, err := os.Stat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return p.changed(f.path, "deleted")
		case err == nil && !os.SameFile(info, f.info):
			return p.changed(f.path, "replaced")
		}
		// Any other error, such as that of an unreadable folder, says nothing about the file.
	}
	return nil
}

func (p *openedFiles) changed(path, what string) error {
	return fmt.Errorf("database %s: %w: the file %s was %s while this process has it open; "+
		"put the original file back, or restart to use the file that is there now", p.name, store.ErrUnavailable, path, what)
}
