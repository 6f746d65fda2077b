package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

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
