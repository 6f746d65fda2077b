package logging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// file is a file that lines are appended to. It is safe for concurrent use. reopen does
// not wait for a write, which takes as long as the disk, or what reads a pipe, lets it.
type file struct {
	name string
	next atomic.Pointer[os.File] // replaces f before the next write; nil: f stays
	max  atomic.Int64            // bytes; 0: no bound

	mu    sync.Mutex // held while a write runs
	f     *os.File
	lines lineWriter // to f
}

func openFile(name string) (*file, error) {
	f, err := appendTo(name)
	if err != nil {
		return nil, err
	}
	return &file{name: name, f: f, lines: lineWriter{f, endsInPart(name)}}, nil
}

// appendTo opens a file that its owner writes and its group reads. Without O_NONBLOCK it
// would wait for a process that reads the file, if that is a pipe; writes wait in any case.
func appendTo(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o640)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	switch {
	case errors.Is(err, syscall.ENXIO):
		return nil, fmt.Errorf("cannot open the log file %s: no process reads this pipe; start its reader first", name)
	case err != nil:
		return nil, fmt.Errorf("cannot open the log file %s: %w", name, err)
	}
	return f, nil
}

// endsInPart reports whether a file ends in a part of a line, which a process left that
// was killed, or whose disk was full. What is not known to be one is none.
func endsInPart(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

func (f *file) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace()
	if err := f.makeRoom(len(p)); err != nil {
		return 0, err
	}
	return f.lines.Write(p)
}

// makeRoom opens another file if n more bytes would exceed the bound. The old one replaces
// the one before it, so that the log takes at most twice as much. Standard output and
// error have no bound: /dev/stdout leads to the file, whatever its name is by then. The
// caller holds f.mu.
func (f *file) makeRoom(n int) error {
	info, err := f.f.Stat()
	if most := f.max.Load(); most == 0 || err != nil || info.Size() == 0 || info.Size()+int64(n) <= most ||
		isSame(f.f, os.Stdout) || isSame(f.f, os.Stderr) {
		return nil
	}
	// A file that has the name by now, from another process, is opened and not renamed.
	if named, err := os.Stat(f.name); err == nil && os.SameFile(named, info) {
		name, err := filepath.EvalSymlinks(f.name)
		if err == nil {
			err = os.Rename(name, name+".old")
		}
		if err != nil {
			return err
		}
	}
	if err := f.reopen(); err != nil { // takes effect below, since f.mu is held
		return err
	}
	f.replace()
	return nil
}

// replace closes f.f if there is a next file. The caller holds f.mu.
func (f *file) replace() {
	next := f.next.Swap(nil)
	if next == nil {
		return
	}
	// A pipe, or a file that was not renamed, ends as it did.
	torn := f.lines.torn && isSame(f.f, next) || endsInPart(f.name)
	f.f.Close()
	f.f, f.lines = next, lineWriter{next, torn}
}

func isSame(a, b *os.File) bool {
	first, err := a.Stat()
	if err != nil {
		return false
	}
	second, err := b.Stat()
	return err == nil && os.SameFile(first, second)
}

func (f *file) reopen() error {
	next, err := appendTo(f.name)
	if err != nil {
		return err
	}
	if unused := f.next.Swap(next); unused != nil {
		unused.Close()
	}
	if f.mu.TryLock() { // otherwise the next write replaces the file
		defer f.mu.Unlock()
		f.replace()
	}
	return nil
}

func (f *file) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace()
	f.f.Close()
}
