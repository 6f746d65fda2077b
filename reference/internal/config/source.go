package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// A Source is where the settings of a server come from. It can be read again while the
// server runs: the file may have changed, the environment and the flags have not.
// A file that is a pipe is read once. It is not safe for concurrent use.
type Source struct {
	flags     Flags
	lookupEnv func(string) (string, bool)

	loaded     snapshot // what Load read last
	candidate  snapshot // what Changed or Load read last
	hadContent bool     // Load has read a file that was not empty
	once       bool     // the file can be read only once: a pipe, for example
}

// A snapshot is the result of reading the file.
type snapshot struct {
	name    string
	content []byte
	shared  bool // other users can read it
	err     error
}

func (s snapshot) equal(o snapshot) bool {
	return bytes.Equal(s.content, o.content) && (s.err == nil) == (o.err == nil) && (s.err == nil || s.err.Error() == o.err.Error())
}

// NewSource returns the source with these flags. The flag or PETSTORE_CONFIG names the
// file; without them there is no file. lookupEnv is usually [os.LookupEnv].
//
// An empty variable is a value: PETSTORE_ADMIN_LISTEN= turns the admin listener off.
// [CheckEnvironment] finds misspelt variables.
func NewSource(flags Flags, lookupEnv func(string) (string, bool)) *Source {
	return &Source{flags: flags, lookupEnv: lookupEnv}
}

// File returns the name of the settings file, or "" if there is none.
func (s *Source) File() string {
	if name := s.flags["config"]; name != nil {
		return *name
	}
	name, _ := s.lookupEnv(variable("config"))
	return name
}

// Load reads the settings. If the file had content before, it refuses an
// empty one, which is more likely an interrupted write than a wish for all defaults.
func (s *Source) Load() (*Config, error) {
	now := s.loaded
	switch {
	case s.once:
	case now.name != "":
		now = s.readAgain()
	default:
		s.once = isIrregular(s.File())
		now = s.read()
	}
	s.loaded, s.candidate = now, now
	s.hadContent = s.hadContent || len(now.content) > 0
	switch {
	case now.err != nil:
		return nil, now.err
	case len(now.content) == 0 && s.hadContent:
		return nil, fmt.Errorf("%s: the file is empty; for the defaults of all settings, write a comment into it", now.name)
	default:
		return load(now, s.flags, s.lookupEnv)
	}
}

// Changed reads the file and reports whether it differs from what Load read last. It
// must have been the same in the call before, so that a file which is being written
// is not loaded. Without a file, and for a pipe, it returns false.
func (s *Source) Changed() bool {
	if s.File() == "" || s.once {
		return false
	}
	now := s.readAgain()
	stable := now.equal(s.candidate)
	s.candidate = now
	return stable && !now.equal(s.loaded)
}

func (s *Source) read() snapshot {
	name := s.File()
	if name == "" {
		return snapshot{}
	}
	f, err := os.Open(name)
	file, err := readOpened(f, err, maxFile)
	return file.named(name, err)
}

// readAgain is read for a file that was regular before. It never waits, as it would for
// a pipe that has replaced the file.
func (s *Source) readAgain() snapshot {
	name := s.File()
	file, err := readRegularFile(name, maxFile)
	return file.named(name, err)
}

func (s snapshot) named(name string, err error) snapshot {
	s.name = name
	if err != nil {
		s.err = fmt.Errorf("cannot read settings file %s: %w", name, err)
	}
	return s
}

// isIrregular reports whether name exists and is not a regular file.
func isIrregular(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular()
}

// readRegularFile reads a regular file, and one byte more than the largest one may have, so
// that a larger one is noticed. Any other file is an error, for which it does not wait: to
// open a pipe could block for ever. The error does not have the name.
func readRegularFile(name string, most int) (snapshot, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		if info, statErr := f.Stat(); statErr != nil || !info.Mode().IsRegular() {
			f.Close()
			err = cmp.Or(statErr, errNotRegular)
		}
	}
	return readOpened(f, err, most)
}

var errNotRegular = errors.New("it is not a regular file")

// readOpened reads and closes a file that was opened without an error.
func readOpened(f *os.File, err error, most int) (file snapshot, _ error) {
	if err == nil {
		defer f.Close()
		info, statErr := f.Stat()
		file.shared = statErr == nil && info.Mode().Perm()&0o004 != 0 && runtime.GOOS != "windows"
		file.content, err = io.ReadAll(io.LimitReader(f, int64(most)+1))
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return file, err
}

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
func load(file snapshot, flags Flags, lookupEnv func(string) (string, bool)) (*Config, error) {
	c, err := read(file.name, file.content, flags, lookupEnv)
	if err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if secrets := c.secretsInFile(); file.shared && len(secrets) > 0 {
		c.warning = fmt.Sprintf("other users of the machine can read %s, which has a secret in %s; remove their right with chmod o-r",
			file.name, strings.Join(secrets, ", "))
	}
	return c, nil
}

// secretsInFile returns the settings that have a secret in the settings file.
func (c *Config) secretsInFile() (names []string) {
	for _, s := range c.settings() {
		if text := s.texts()[s.name]; s.hide != nil && s.hide(text) != text && c.places[s.name].line > 0 {
			names = append(names, s.name)
		}
	}
	return names
}

// Default returns the settings of a server without a file, variables and flags.
func Default() *Config {
	c, err := read("", nil, nil, func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err) // the declaration of a setting is wrong
	}
	return c
}
