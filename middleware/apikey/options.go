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
	// TTL is for how long an answer of the store is good. It is 1 second at most,
	// which is also what 0 means.
	TTL time.Duration

	// Capacity bounds how many valid keys are remembered, and how many that are not
	// valid, which are kept apart so that a flood of these cannot displace those.
	// From half of it on, keys that were not looked up lately may be forgotten,
	// which costs a look-up. It is rounded up to a multiple of 32. 0 means 32,768.
	// A key takes some 250 bytes.
	Capacity int

	// Timeout bounds one look-up in the store. 0 means 2 seconds.
	Timeout time.Duration

	// UnknownLookups bounds how many keys that were not valid lately are looked up
	// at the same time; the others wait. It keeps a flood of invented keys from
	// taking the store away from the valid ones, which never wait. 0 means 32.
	UnknownLookups int

	// Now is the clock. If nil, it is [time.Now].
	Now func() time.Time
}

func (o Options) validate() error {
	if o.TTL < 0 || o.TTL > maxTTL {
		return fmt.Errorf("apikey: Options.TTL: %v is not between 0 and %v", o.TTL, maxTTL)
	}
	if o.Capacity < 0 {
		return fmt.Errorf("apikey: Options.Capacity: %d is negative", o.Capacity)
	}
	if o.Timeout < 0 {
		return fmt.Errorf("apikey: Options.Timeout: %v is negative", o.Timeout)
	}
	if o.UnknownLookups < 0 {
		return fmt.Errorf("apikey: Options.UnknownLookups: %d is negative", o.UnknownLookups)
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
