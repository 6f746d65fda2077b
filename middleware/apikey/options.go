package apikey

import (
	"fmt"
	"time"
)

const (
	defaultTTL            = time.Second
	maxTTL                = 24 * time.Hour
	maxInvalidTTL         = time.Second
	defaultCapacity       = 1 << 15
	defaultTimeout        = 2 * time.Second
	defaultUnknownLookups = 32
)

// Options are optional settings of [NewVerifier]. The zero value works.
type Options struct {
	// MoreFormats are further formats of keys that are accepted, such as that of test keys
	// or that of an older prefix. No two formats may have the same prefix. All keys are in
	// the same store. [Principal.Prefix] says which format a key has.
	MoreFormats []*Format

	// TTL is how long the cache keeps the store's answer that a key is valid, up to 24
	// hours. 0 means 1 second.
	//
	// A revoked key is accepted until TTL after its revocation at the latest, in every
	// process, and a changed plan takes effect as late. [Verifier.Forget] makes it take
	// effect at once in one process. A longer TTL saves look-ups, and lets keys that were
	// verified within it keep working while the store fails. Expires and Revoked of a
	// [RecordOf] that the store has answered with are exact, whatever the TTL.
	//
	// The answer that a key is not valid is cached for at most 1 second, even if TTL is
	// longer. So a new key works within a second.
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
		o.TTL = defaultTTL
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
