package memory

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockFile opens a file that no other process can open until it is closed, also by the end of
// this process.
func lockFile(path string) (*os.File, error) {
	const sharingViolation = syscall.Errno(32)
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case err == nil:
		return os.NewFile(uintptr(h), path), nil
	case errors.Is(err, sharingViolation):
		return nil, errInUse
	default:
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
}
