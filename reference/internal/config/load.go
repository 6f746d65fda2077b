package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read is [NewSource] and [Source.Load] for commands that do not serve: it does not check
// the settings against each other. [Config.Check] does.
func Read(flags Flags, lookupEnv func(string) (string, bool)) (*Config, error) {
	file := NewSource(flags, lookupEnv).read()
	if file.err != nil {
		return nil, file.err
	}
	return read(file.name, file.content, flags, lookupEnv)
}

// load is Source.Load for a file that was read already.
func load(name string, content []byte, flags Flags, lookupEnv func(string) (string, bool)) (*Config, error) {
	c, err := read(name, content, flags, lookupEnv)
	if err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return c, nil
}

// read is Read for a file that was read already.
func read(name string, content []byte, flags Flags, lookupEnv func(string) (string, bool)) (*Config, error) {
	c := Default()
	c.places = map[string]string{}
	var r report
	if root := parseYAML(name, content, &r); root != nil {
		(&decoder{&r, name, c}).decode(root)
	}
	c.applyOverrides(flags, lookupEnv, &r)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// settingsFile returns the name of the file, or "" if none is named.
func settingsFile(flags Flags, lookupEnv func(string) (string, bool)) string {
	if flags.Config != nil {
		return *flags.Config
	}
	name, _ := lookupEnv(variable("config"))
	return name
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	return readOpened(name, f, err)
}

// readRegularFile is readFile for a regular file. Any other is an error, for which it does
// not wait: to open a pipe could block for ever.
func readRegularFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		if info, statErr := f.Stat(); statErr != nil || !info.Mode().IsRegular() {
			f.Close()
			err = cmp.Or(statErr, errNotRegular)
		}
	}
	return readOpened(name, f, err)
}

var errNotRegular = errors.New("it is not a regular file")

// readOpened reads and closes a file that was opened without an error.
func readOpened(name string, f *os.File, err error) ([]byte, error) {
	if err == nil {
		defer f.Close()
		// One byte more than parseYAML accepts, so that it refuses a larger file.
		var content []byte
		if content, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err == nil {
			return content, nil
		}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return nil, fmt.Errorf("cannot read settings file %s: %w", name, err)
}
