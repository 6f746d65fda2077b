package config

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
)

func (c *Config) setLogLevel(text string) error {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	i := slices.IndexFunc(levels, func(l slog.Level) bool { return strings.ToLower(l.String()) == text })
	if i < 0 {
		return fmt.Errorf("must be debug, info, warn or error, got %q", text)
	}
	c.Log.Level = levels[i]
	return nil
}

func (c *Config) setLogFormat(text string) error {
	switch text {
	case LogAuto, LogText, LogJSON:
		c.Log.Format = text
		return nil
	default:
		return fmt.Errorf("must be auto, text or json, got %q", text)
	}
}

func (c *Config) setLogFile(text string) error {
	c.Log.File = text
	if strings.ContainsRune(text, 0) {
		return errors.New("must not contain NUL")
	}
	return nil
}

// maxLogSize is in MiB.
const maxLogSize = 1_000_000

func (c *Config) setLogMaxSize(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxLogSize || strconv.Itoa(n) != text {
		return fmt.Errorf("must be a whole number of MiB from 0 to %d, got %q", maxLogSize, text)
	}
	c.Log.MaxSize = n
	return nil
}
