package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// SetAside renames the database file at path, which must not be open, and the log
// that belongs to it, so that a new file can take its place and the old one can be
// examined. It returns the new name, which ends with the time.
func SetAside(path string, now time.Time) (string, error) {
	aside := path + ".damaged-" + now.UTC().Format("20060102T150405.000Z")
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("set aside database %s: %w", path, withoutPath(err))
	}
	// A log that stayed would be taken for that of the new file.
	err := os.Rename(path+"-wal", aside+"-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("set aside the log of database %s: %w", path, err)
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("set aside the log of database %s: %w", path, err)
	}
	return aside, nil
}
