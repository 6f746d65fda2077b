package postgres

import (
	"fmt"
	"time"
)

// Options are optional settings of [Open]. The zero value works.
type Options struct {
	// NoMigrate has Open refuse a database without tables, or with an older schema than
	// this program needs. [Migrate] creates and upgrades them.
	NoMigrate bool

	// OnUpgrade is called before a schema of an older version is upgraded. It is not
	// called for a database that has none yet.
	OnUpgrade func(from, to int64)

	// Timeout is how long a call waits for a connection at most, and then for the answer.
	// Zero: five seconds.
	Timeout time.Duration
}

func (o Options) validate() error {
	if o.Timeout < 0 {
		return fmt.Errorf("postgres: Options.Timeout must not be negative, got %v", o.Timeout)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	return o
}
