package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/animalstore/gatehouse/reference/internal/database"
)

// UsagePath returns the file in which a server without Redis keeps usage. It is empty if
// the database is PostgreSQL and usage_file is not set, which [Source.Load] refuses.
func (c *Config) UsagePath() string {
	if c.UsageFile != "" {
		return c.UsageFile
	}
	return database.UsagePath(c.Database)
}

func (c *Config) setDatabase(text string) error {
	c.Database = text
	return database.Check(text)
}

func (c *Config) setMigrate(text string) error {
	if text != MigrateAuto && text != MigrateManual {
		return fmt.Errorf("must be auto or manual, got %q", text)
	}
	c.Migrate = text
	return nil
}

func (c *Config) setUsageFile(text string) error {
	c.UsageFile = text
	if strings.ContainsRune(text, 0) {
		return errors.New("must not contain NUL")
	}
	return nil
}

// checkUsageFile adds a mistake if a server would have no place for its usage, or would
// use a file that is something else.
func (c *Config) checkUsageFile(r *report) {
	if len(c.Redis) > 0 {
		return
	}
	wrong := func(setting, format string, args ...any) {
		r.add(place{text: c.Where(setting)}, setting, format, args...)
	}
	switch {
	case c.UsagePath() == "":
		wrong("database", "PostgreSQL does not keep usage and bans; set redis, which several servers can share, "+
			"or usage_file to a file of a single server")
	case c.UsageFile != "" && c.UsageFile == c.Database:
		wrong("usage_file", "%s is the database; choose another file", c.UsageFile)
	}
}

func databaseValues(c *Config) []value {
	return []value{{name: "database", text: c.Database, display: database.Redacted(c.Database)}}
}
