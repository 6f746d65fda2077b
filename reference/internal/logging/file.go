package logging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// file is a file that lines are appended to.
type file struct {
	name string
	mu   sync.Mutex
	f    *os.File
}

func openFile(name string) (*file, error) {
	f, err := appendTo(name)
	if err != nil {
		return nil, err
	}
	return &file{name: name, f: f}, nil
}

// appendTo opens a file that its owner writes and its group reads.
func appendTo(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the log file %s: %w", name, err)
	}
	return f, nil
}

func (f *file) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Write(p)
}

func (f *file) reopen() error {
	next, err := appendTo(f.name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.f.Close()
	f.f = next
	return err
}

func (f *file) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.f.Close()
}
