//go:build unix

package sqlite

import "syscall"

// canWrite returns an error if this user may not read and write a file.
func canWrite(path string) error {
	const readAndWrite = 4 | 2
	return syscall.Access(path, readAndWrite)
}
