//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// canWrite returns an error if this user may not read and write a file.
func canWrite(path string) error {
	const readAndWrite = 4 | 2
	return syscall.Access(path, readAndWrite)
}

// giveTo gives a file the mode and, if this user may, the owner of another.
func giveTo(path string, like os.FileInfo) error {
	if stat, ok := like.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(path, int(stat.Uid), int(stat.Gid)); err != nil && os.Geteuid() == 0 {
			return err
		}
	}
	return os.Chmod(path, like.Mode().Perm())
}
