//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package memory

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockFile opens a file that no other process can lock until it is closed, also by the end of
// this process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		_ = f.Close()
		return nil, errInUse
	default:
		_ = f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
}
