package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// secrets are the settings that can hold a secret. For each, the environment can name a
// file with the value instead, because other processes of the user can see the
// environment, and because container and service managers pass secrets as files.
var secrets = []string{"admin_token", "database", "redis"}

// fileVariable returns the variable that names the file with the value of a secret.
func fileVariable(name string) string { return variable(name) + "_FILE" }

// lookupVariable returns the value of a setting in the environment, and the variable that
// it is from; "" if it is not set.
func lookupVariable(name string, lookupEnv func(string) (string, bool)) (value, from string, err error) {
	value, given := lookupEnv(variable(name))
	if slices.Contains(secrets, name) {
		if file, ok := lookupEnv(fileVariable(name)); ok {
			if given {
				return "", fileVariable(name), fmt.Errorf("%s is set too; unset one of them", variable(name))
			}
			value, err = readSecret(file)
			return value, fileVariable(name), err
		}
	}
	if !given {
		return "", "", nil
	}
	return value, variable(name), nil
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
