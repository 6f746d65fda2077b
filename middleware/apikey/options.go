package apikey

import (
	"fmt"
	"time"
)

const (
	maxTTL                = time.Second
	defaultCapacity       = 1 << 15
	defaultTimeout        = 2 * time.Second
	defaultUnknownLookups = 32
)

// Options are optional settings of [NewVerifier]. The zero value works.
type Options struct {
	// TTL is how long an answer of the store is cached, up to 1 second. 0 means 1
	// second.
	TTL time.Duration

	// Capacity is the maximum number of valid keys in the cache, and also that of other
	// keys. The two are kept apart, so that a flood of other keys cannot displace valid
	// keys. When the cache is more than half full, it may drop keys that were not looked
	// up lately, which costs a look-up. Capacity is rounded up to a multiple of 32. 0
	// means 32,768. A key takes about 250 bytes.
	Capacity int

	// Timeout is the time limit of one look-up in the store. 0 means 2 seconds.
	Timeout time.Duration

	// UnknownLookups is the maximum number of concurrent look-ups of keys that were not
	// valid lately; further ones wait. It keeps a flood of invented keys from blocking
	// look-ups of valid keys, which never wait. 0 means 32.
	UnknownLookups int

	// Now is the clock. If nil, it is [time.Now].
	Now func() time.Time
}

func (o Options) validate() error {
	if o.TTL < 0 || o.TTL > maxTTL {
		return fmt.Errorf("apikey: Options.TTL must be from 0s to %v, got %v", maxTTL, o.TTL)
	}
	if o.Capacity < 0 {
		return fmt.Errorf("apikey: Options.Capacity must be 0 or more, got %d", o.Capacity)
	}
	if o.Timeout < 0 {
		return fmt.Errorf("apikey: Options.Timeout must be 0s or more, got %v", o.Timeout)
	}
	if o.UnknownLookups < 0 {
		return fmt.Errorf("apikey: Options.UnknownLookups must be 0 or more, got %d", o.UnknownLookups)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.TTL == 0 {
		o.TTL = maxTTL
	}
	if o.Capacity == 0 {
		o.Capacity = defaultCapacity
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.UnknownLookups == 0 {
		o.UnknownLookups = defaultUnknownLookups
	}
	return o
}
