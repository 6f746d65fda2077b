package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// A Source is where the settings of a server come from. It can be read again while the
// server runs: the file may have changed, the environment and the flags have not.
// It is not safe for concurrent use.
type Source struct {
	flags Flags
	env   map[string]string // variables that begin with PETSTORE_

	loaded     file // what Load read last
	candidate  file // what Changed or Load read last
	hadContent bool // Load has read a file that was not empty
}

// NewSource returns the source with these flags and this environment, which is usually
// [os.Environ]. The flag or PETSTORE_CONFIG names the file; without them there is no file.
//
// An empty variable is a value: PETSTORE_ADMIN_LISTEN= turns the admin listener off.
func NewSource(flags Flags, environ []string) *Source {
	env := map[string]string{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, variable("")) {
			env[name] = value
		}
	}
	return &Source{flags: flags, env: env}
}

// File returns the name of the settings file, or "" if there is none.
func (s *Source) File() string {
	if name := s.flags["config"]; name != nil {
		return *name
	}
	return s.env[variable("config")]
}

// Load reads the settings. If the file had content before, Load refuses an empty one, which is
// more likely an interrupted write than a wish for all defaults.
func (s *Source) Load() (*Config, error) {
	now := s.read()
	s.loaded, s.candidate = now, now
	s.hadContent = s.hadContent || len(now.content) > 0
	if now.err == nil && len(now.content) == 0 && s.hadContent {
		return nil, fmt.Errorf("%s: the file is empty; for the defaults of all settings, write a comment into it", now.name)
	}
	return s.load(now)
}

// Changed reads the file and reports whether it differs from what Load read last, and is the
// same as in the call before, so that a file which is being written is not loaded. Without a
// file it returns false.
func (s *Source) Changed() bool {
	now := s.read()
	stable := now.equal(s.candidate)
	s.candidate = now
	return stable && !now.equal(s.loaded)
}

func (s *Source) read() file {
	name := s.File()
	if name == "" {
		return file{}
	}
	f := readFile(name, maxFile)
	if f.err != nil {
		f.err = fmt.Errorf("cannot read settings file %s: %w", name, f.err)
	}
	return f
}

// Read is [NewSource] and [Source.Load] for commands that do not serve: it does not check
// the settings against each other. [Config.Check] does. If the error is about some settings,
// Read returns the others with it.
func Read(flags Flags, environ []string) (*Config, error) {
	s := NewSource(flags, environ)
	return s.parse(s.read())
}

// A file is the result of reading a file.
type file struct {
	name    string
	content []byte
	shared  bool // other users can read it
	err     error
}

func (f file) equal(o file) bool {
	return bytes.Equal(f.content, o.content) && fmt.Sprint(f.err) == fmt.Sprint(o.err)
}

// readFile reads a regular file of at most so many bytes. Any other file is an error: to open
// a pipe could block for ever, and it could be read only once. The error does not have the
// name.
func readFile(name string, most int64) file {
	read := file{name: name}
	info, err := os.Stat(name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case info.Size() > most:
		err = fmt.Errorf("it is larger than %d KiB", most>>10)
	default:
		read.shared = info.Mode()&0o004 != 0 && runtime.GOOS != "windows"
		read.content, err = os.ReadFile(name)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	read.err = err
	return read
}

// load is Load for a file that was read already.
func (s *Source) load(f file) (*Config, error) {
	c, err := s.parse(f)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Default returns the settings of a server without a file, variables and flags.
func Default() *Config {
	c, err := Read(nil, nil)
	if err != nil {
		panic(err) // the declaration of a setting is wrong
	}
	return c
}
