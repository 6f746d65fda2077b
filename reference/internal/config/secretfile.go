package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// fileVariable returns the variable that names a file with the value of a setting. Only
// settings that can hold a secret have one, because other processes of the user can see the
// environment, and because container and service managers pass secrets as files.
func fileVariable(name string) string { return variable(name) + "_FILE" }

// lookupVariable returns the value of a setting in the environment, and the variable that
// it is from; "" if it is not set.
func lookupVariable(s setting, lookupEnv func(string) (string, bool)) (value, from string, err error) {
	value, given := lookupEnv(variable(s.name))
	if s.fileVar {
		from := fileVariable(s.name)
		switch file, ok := lookupEnv(from); {
		case ok && given:
			return "", from, fmt.Errorf("%s is set too; unset one of them", variable(s.name))
		case ok:
			value, err = readSecret(file)
			return value, from, err
		}
	}
	if !given {
		return "", "", nil
	}
	return value, variable(s.name), nil
}

// maxSecret is longer than any token or URL.
const maxSecret = 64 << 10

// readSecret returns the only line of a file. A pipe is refused: it could be read only
// once, and the server reads its settings again.
func readSecret(name string) (string, error) {
	if name == "" {
		return "", errors.New("must name a file with the value, but is empty; unset it if there is none")
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return "", cannotReadSecret(name, errNotRegular)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", cannotReadSecret(name, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", cannotReadSecret(name, err)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	if line == "" {
		return "", fmt.Errorf("must name a file with the value, got %s, which is empty", name)
	}
	if len(content) > maxSecret || strings.ContainsAny(line, "\x00\r\n") {
		return "", fmt.Errorf("must name a file with the value in one line, got %s, which has something else", name)
	}
	return line, nil
}

func cannotReadSecret(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("cannot read %s: %w", name, err)
}

// A Secret is text that does not show by accident: it prints, logs and encodes as
// "[redacted]", or as nothing if it is empty.
type Secret string

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) redacted() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// Format writes what String returns, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.redacted()) }

// String returns "[redacted]", or "" if s is empty.
func (s Secret) String() string { return s.redacted() }

// MarshalText returns what String returns. It also serves JSON and log/slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.redacted()), nil }
