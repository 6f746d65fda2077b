package memory

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// A disk that is full in the middle of a save leaves the old file.
func TestFileOnAFullDisk(t *testing.T) {
	const child = "GATEHOUSE_TEST_FULL_DISK"
	if file := os.Getenv(child); file != "" {
		saveOnAFullDisk(t, file)
		return
	}
	file := filepath.Join(t.TempDir(), "usage")
	l, _, closeFile := open(t, file)
	wantRemaining(t, l, "ann", 9)
	must(t, closeFile())
	before, err := os.ReadFile(file)
	must(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestFileOnAFullDisk$")
	cmd.Env = append(os.Environ(), child+"="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has %d bytes (%v), want the %d of before", len(after), err, len(before))
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v (%v), want the file and its lock", entries, err)
	}
}

// saveOnAFullDisk runs in a process of its own, since its limit holds for all files.
func saveOnAFullDisk(t *testing.T, file string) {
	signal.Ignore(syscall.SIGXFSZ)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}))
	l, save, _ := open(t, file)
	for i := range 100 {
		wantRemaining(t, l, fmt.Sprint("user:", i), 9)
	}
	if err := save(); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("save = %v, want EFBIG", err)
	}
}
