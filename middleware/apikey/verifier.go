package apikey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/internal/nilvalue"
)

// A Verifier finds the principal, of type P, of a key. It asks a [StoreOf], and caches the
// answer for [Options.TTL], 1 second by default. It is safe for concurrent use and needs
// no Close.
//
// The store is asked about a valid key at most once per TTL, and about another key at
// most once per second, however many requests have it. Requests that arrive during a
// look-up wait for its answer, and a request that gives up does not cancel it for the
// others. If a look-up takes longer than a second, later requests start another one. The
// age of an answer counts from the start of the look-up, so a slow store does not delay a
// revocation. The instants of expiry and revocation in a [RecordOf] take effect exactly.
//
// A request is never accepted because of an answer that was older than the TTL when the
// request arrived, even if the store fails. A failure of the store is not cached: the
// next request asks again.
type Verifier[P any] struct {
	formats []*Format // with different prefixes
	store   StoreOf[P]
	ttl     time.Duration // of the answer that a key is valid
	timeout time.Duration
	now     func() time.Time
	since   func(time.Time) time.Duration
	unknown chan struct{} // semaphore of look-ups of unknown keys
	shards  [shardCount]shard[P]

	invalidTTL time.Duration // of any other answer
}

// NewVerifier returns a Verifier of the keys of a format, and of [Options.MoreFormats].
//
// P is what the store says: [Principal], or a type of the service. In a Principal, and in
// one that a struct embeds by value, the Verifier sets Prefix, and Subject if it is empty.
// It passes on a principal of any other type unchanged. Requests with the same key share
// what a principal refers to, such as a slice of scopes, and must not change it.
func NewVerifier[P any](format *Format, store StoreOf[P], opts Options) (*Verifier[P], error) {
	formats, err := allFormats(format, opts.MoreFormats)
	if err != nil {
		return nil, err
	}
	if nilvalue.In(store) {
		return nil, errors.New("apikey: NewVerifier: the store must not be nil")
	}
	if err := checkPrincipal[P](); err != nil {
		return nil, err
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	v := &Verifier[P]{
		formats: formats,
		store:   store,
		ttl:     opts.TTL,
		timeout: opts.Timeout,
		now:     opts.Now,
		unknown: make(chan struct{}, opts.UnknownLookups),

		invalidTTL: min(opts.TTL, maxInvalidTTL),
	}
	v.since = func(t time.Time) time.Duration { return v.now().Sub(t) }
	if v.now == nil {
		v.now, v.since = time.Now, time.Since // Since costs half as much as Now
	}
	for i := range v.shards {
		v.shards[i].init(opts.Capacity)
	}
	return v, nil
}

// Verify returns the principal of a key. If the key is not valid, the error is
// one of [ErrMalformed], [ErrUnknown], [ErrExpired] and [ErrRevoked], all of which
// wrap bearer.ErrInvalid. Any other error means that the key could not be verified:
// the store failed, or ctx ended. No error contains the key.
//
// A key with a wrong checksum is rejected without a look-up, and so faster than an
// unknown key. This reveals nothing, because the checksum is public. Unknown, expired
// and revoked keys take equally long.
func (v *Verifier[P]) Verify(ctx context.Context, key string) (P, error) {
	var none P
	format := v.formatOf(key)
	if format == nil {
		return none, ErrMalformed
	}
	digest := DigestOf(key)
	s := &v.shards[digest[0]%shardCount]
	if a := v.cached(s, digest); a != nil {
		return a.principal(v.now)
	}
	// The checksum is checked only now: a cached key has passed the check.
	if !format.Check(key) {
		return none, ErrMalformed
	}
	a, err := v.lookUp(ctx, s, digest, format.prefix)
	if err != nil {
		return none, fmt.Errorf("apikey: looking up a key: %w", err)
	}
	return a.principal(v.now)
}

// formatOf returns the format that a key has by its prefix and length, or nil. There is at
// most one: of two prefixes of the same length, a key has one.
func (v *Verifier[P]) formatOf(key string) *Format {
	for _, f := range v.formats {
		if f.hasForm(key) {
			return f
		}
	}
	return nil
}

// Forget drops what is cached about a key, such as one that was revoked or has another
// plan. A request that calls Verify after Forget has returned asks the store again. Other
// processes are not told. If TTL is 1 second, as by default, Forget is rarely needed.
func (v *Verifier[P]) Forget(d Digest) {
	s := &v.shards[d[0]%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.valid.remove(d)
	s.invalid.remove(d)
	// A look-up that is under way may have read the store before the change. It answers
	// the requests that wait for it; new requests do not join it, and it is not cached.
	delete(s.lookups, d)
	s.forgets++
}
