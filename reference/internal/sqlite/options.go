package sqlite

import (
	"fmt"
	"time"
)

// Options are optional settings of the functions of this package. The zero value works.
type Options struct {
	// BusyTimeout is how long a call waits for another process that locks the file,
	// in whole milliseconds. Zero: five seconds.
	BusyTimeout time.Duration

	// Readers is the number of connections for reading. Zero: eight.
	Readers int

	// MaxBatch is the largest number of writes in one transaction. Zero: 256.
	// One: writes share no transaction.
	MaxBatch int

	// OnUpgrade is called before a file of an older version is upgraded, when the copy
	// of it is complete.
	OnUpgrade func(Upgrade)

	// NoMigrate refuses a file that is missing or of an older version, and changes
	// nothing. [Migrate] creates and upgrades it then. OpenUsage ignores it.
	NoMigrate bool

	noCopy bool // the file is a copy already
}

func (o Options) validate() error {
	switch {
	case o.BusyTimeout < 0 || o.BusyTimeout%time.Millisecond != 0:
		return fmt.Errorf("sqlite: Options.BusyTimeout must be whole milliseconds from 0, got %v", o.BusyTimeout)
	case o.Readers < 0:
		return fmt.Errorf("sqlite: Options.Readers must not be negative, got %d", o.Readers)
	case o.MaxBatch < 0:
		return fmt.Errorf("sqlite: Options.MaxBatch must not be negative, got %d", o.MaxBatch)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Readers == 0 {
		o.Readers = 8
	}
	if o.MaxBatch == 0 {
		o.MaxBatch = 256
	}
	return o
}
