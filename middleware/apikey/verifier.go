package apikey

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Verifier tells whom a key belongs to. It asks a [Store], and remembers what
// that said, good or bad, for [Options.TTL]. It is safe for concurrent use and
// needs no closing.
//
// However many requests come with one key, the store is asked about it once in a
// TTL: those that come while it is being asked wait for the same answer, and one
// that gives up does not take it from the others. An answer counts as old as the
// question, so a slow store does not delay a revocation.
//
// A request is never accepted by an answer that was older than the TTL when it came,
// even if the store fails, so that a revocation always acts in time. A failure of
// the store is not remembered; the next request asks again.
type Verifier struct {
	format  *Format
	store   Store
	ttl     time.Duration
	timeout time.Duration
	now     func() time.Time
	since   func(time.Time) time.Duration
	unknown chan struct{} // holds one element for each look-up of an unknown key under way
	shards  [shardCount]shard
}

// NewVerifier returns a Verifier of the keys of a format.
func NewVerifier(format *Format, store Store, opts Options) (*Verifier, error) {
	if format == nil || format.prefix == "" {
		return nil, errors.New("apikey: format is missing: it is made by NewFormat")
	}
	if store == nil {
		return nil, errors.New("apikey: store is nil")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	v := &Verifier{
		format:  format,
		store:   store,
		ttl:     opts.TTL,
		timeout: opts.Timeout,
		now:     opts.Now,
		unknown: make(chan struct{}, opts.UnknownLookups),
	}
	v.since = func(t time.Time) time.Duration { return v.now().Sub(t) }
	if v.now == nil {
		v.now, v.since = time.Now, time.Since // which costs half of Now
	}
	for i := range v.shards {
		v.shards[i].init(opts.Capacity)
	}
	return v, nil
}

// Verify returns the principal of a key. If the key is not valid, the error is
// one of [ErrMalformed], [ErrUnknown], [ErrExpired] and [ErrRevoked], all of which
// wrap bearer.ErrInvalid. Any other error means that it could not be told: the
// store failed, or ctx ended. No error holds the key.
//
// A key with a wrong checksum is refused without a look-up, and so sooner than an
// unknown one. A client learns no more from that than from the checksum itself;
// unknown, expired and revoked keys take equally long.
func (v *Verifier) Verify(ctx context.Context, key string) (Principal, error) {
	if !v.format.fits(key) {
		return Principal{}, ErrMalformed
	}
	digest := DigestOf(key)
	s := &v.shards[digest[0]%shardCount]
	if a := v.recall(s, digest); a != nil {
		return a.principal(v.now)
	}
	// The checksum is left for here: a key that is remembered has passed it.
	if !v.format.Check(key) {
		return Principal{}, ErrMalformed
	}
	a, err := v.lookUp(ctx, s, digest)
	if err != nil {
		return Principal{}, fmt.Errorf("apikey: looking a key up: %w", err)
	}
	return a.principal(v.now)
}
