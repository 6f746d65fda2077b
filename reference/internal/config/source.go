package config

import (
	"bytes"
	"fmt"
	"os"
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
func (s *Source) File() string { return settingsFile(s.flags, s.lookupEnv) }

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
		return load(now.name, now.content, s.flags, s.lookupEnv)
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
	content, err := readFile(name)
	return snapshot{name, content, err}
}

// readAgain is read for a file that was regular before. It never waits, as it would for
// a pipe that has replaced the file.
func (s *Source) readAgain() snapshot {
	name := s.File()
	content, err := readRegularFile(name)
	return snapshot{name, content, err}
}

// isIrregular reports whether name exists and is not a regular file.
func isIrregular(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular()
}
