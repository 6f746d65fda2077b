//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package memory

import "os"

// lockFile only opens the file: this system has no lock that ends with its process.
func lockFile(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) }
