package apikey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/internal/response"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

const (
	defaultTTL = time.Second
	maxTTL     = 24 * time.Hour

	// capacity is the maximum number of valid keys in the cache, and the maximum number of other keys.
	// The two are kept apart, so that a flood of other keys cannot displace valid keys.
	capacity = 1 << 15

	// lookupTimeout is the time limit of one look-up in the store.
	lookupTimeout = 2 * time.Second

	// unknownLookups is the maximum number of concurrent look-ups of keys that were not valid
	// lately; further ones wait. It keeps a flood of invented keys from blocking look-ups of
	// valid keys, which never wait.
	unknownLookups = 32
)

// Options are optional settings of [NewVerifier]. The zero value works.
type Options struct {
	// MoreFormats are further formats of keys that are accepted, such as test keys or keys
	// with an older prefix. No two formats may have the same prefix. All keys are in
	// the same store. [Principal.Prefix] says which format a key has.
	MoreFormats []*Format

	// TTL is how long the cache keeps the store's answer that a key is valid, up to 24
	// hours. 0 means 1 second.
	//
	// A revoked key is accepted until TTL after its revocation at the latest, in every
	// process, and a changed plan takes effect as late. [Verifier.Forget] makes it take
	// effect immediately in one process. A longer TTL saves look-ups, and lets keys that were
	// verified within it keep working while the store fails. Expires and Revoked of a
	// [Record] that the store has answered with are exact, whatever the TTL.
	//
	// The answer that a key is not valid is cached for at most 1 second, even if TTL is
	// longer. So a new key works within a second.
	TTL time.Duration

	// Guesses is the plan of a network for look-ups of keys that are not valid; see [Verifier].
	// Nil means 60 a minute, and [ratelimit.UnlimitedPlan] any number. With less than 32 at
	// once, valid keys that are new and come at once can be refused. It must not be suspended.
	Guesses *ratelimit.Plan

	// Source finds the network of a client. Behind a reverse proxy it must be set, as for
	// package limit: otherwise one client that guesses keeps all new keys out. With
	// [clientip.Source.WithIPv6Prefix], guesses are counted by that prefix too. Nil means
	// [clientip.FromRemoteAddr].
	Source *clientip.Source

	// Now is the clock. If nil, it is [time.Now].
	Now func() time.Time
}

// A Verifier finds the principal, of type P, of a key. It asks a [Store], and caches the
// answer for [Options.TTL], 1 second by default. It is safe for concurrent use and needs
// no Close.
//
// The store is asked about a valid key at most once per TTL, and about another key at
// most once per second, however many requests have it. Requests that arrive during a
// look-up wait for its answer, and a request that gives up does not cancel it for the
// others. If a look-up takes longer than a second, later requests start another one. The
// age of an answer counts from the start of the look-up, so a slow store does not delay a
// revocation. The instants of expiry and revocation in a [Record] take effect exactly.
//
// A request is never accepted because of an answer that was older than the TTL when the
// request arrived, even if the store fails. A look-up fails if it takes 2 seconds. A failure
// is not cached: the next request asks again.
//
// The cache holds 32,768 valid keys and as many others, of about 250 bytes each. When it is
// more than half full, it may drop keys that were not looked up lately.
//
// Behind package bearer, a client's network ([clientip.Network]) may cause 60 look-ups a
// minute that find no valid key or that the client abandons ([Options.Guesses]). After that
// the error is an [apierror.Error], 429 with RetryAfter. A key that was valid when the store
// was last asked is looked up at any time, so that known clients keep working beside one that
// guesses. A valid key that is new to the process looks like a guess: if its network goes on
// guessing, it must be among the first look-ups of a minute. Keys that were not valid lately
// have a budget of their own, so that a client that polls with a revoked key does not refuse
// new ones. Each process counts at most 32,768 networks.
type Verifier[P any] struct {
	formats    []*Format // with different prefixes; the zero Format: keys of any format
	store      Store[P]
	ttl        time.Duration // of the answer that a key is valid
	invalidTTL time.Duration // of any other answer
	now        func() time.Time
	since      func(time.Time) time.Duration
	unknown    chan struct{} // semaphore of look-ups of unknown keys
	guesses    *ratelimit.Plan
	networks   *memory.Limiter // counts look-ups of keys that are not valid
	source     *clientip.Source
	generation int // how many answers are in one generation of a cache
	shards     [shardCount]shard[P]
}

// NewVerifier returns a Verifier of the keys of a format, and of [Options.MoreFormats]. If the
// format is nil, it verifies keys of any format that package bearer reads, without a check of
// a checksum.
//
// P is what the store says: [Principal], or a type of the service. In a Principal, and in
// one that a struct embeds by value, the Verifier sets Prefix, and Subject if it is empty.
// It passes on a principal of any other type unchanged. Requests with the same key share
// what a principal refers to, such as a slice of scopes, and must not change it.
func NewVerifier[P any](format *Format, store Store[P], opts Options) (*Verifier[P], error) {
	formats, err := checkFormats(slices.Insert(slices.Clone(opts.MoreFormats), 0, format))
	if err != nil {
		return nil, err
	}
	if nilvalue.In(store) {
		return nil, errors.New("apikey: NewVerifier: the store must not be nil")
	}
	var zero P
	if _, shared := any(zero).(completer); shared { // to complete it would change what belongs to the store
		return nil, fmt.Errorf("apikey: NewVerifier: principals of type %T share an apikey.Principal by a pointer: "+
			"use a struct that embeds apikey.Principal itself", zero)
	}
	if opts.TTL < 0 || opts.TTL > maxTTL {
		return nil, fmt.Errorf("apikey: Options.TTL must be from 0s to %v, got %v", maxTTL, opts.TTL)
	}
	guesses := cmp.Or(opts.Guesses, ratelimit.MustPlan("guesses", ratelimit.Penalty{}, ratelimit.PerMinute(60)))
	networks, _ := memory.New(memory.Options{MaxSubjects: capacity, Now: opts.Now}) // fails for other options only
	if err := checkGuesses(networks, guesses); err != nil {
		return nil, err
	}
	ttl := cmp.Or(opts.TTL, defaultTTL)
	v := &Verifier[P]{
		formats: formats, store: store, ttl: ttl, invalidTTL: min(ttl, defaultTTL),
		generation: capacity / (2 * shardCount), now: opts.Now, unknown: make(chan struct{}, unknownLookups),
		guesses: guesses, networks: networks, source: cmp.Or(opts.Source, clientip.FromRemoteAddr()),
	}
	v.since = func(t time.Time) time.Duration { return v.now().Sub(t) }
	if v.now == nil {
		v.now, v.since = time.Now, time.Since // Since costs half as much as Now
	}
	for i := range v.shards {
		v.shards[i].lookups = make(map[Digest]*lookup[P])
	}
	return v, nil
}

// checkFormats checks the formats of a Verifier: the one of NewVerifier comes first, then MoreFormats.
func checkFormats(formats []*Format) ([]*Format, error) {
	if len(formats) == 1 && formats[0] == nil {
		return []*Format{new(Format)}, nil
	}
	for i, f := range formats {
		made := f != nil && f.prefix != ""
		switch {
		case !made && i == 0:
			return nil, errors.New("apikey: NewVerifier: the format must come from NewFormat, or be nil without Options.MoreFormats")
		case !made:
			return nil, errors.New("apikey: Options.MoreFormats must come from NewFormat")
		case slices.ContainsFunc(formats[:i], func(other *Format) bool { return other.prefix == f.prefix }):
			return nil, fmt.Errorf("apikey: Options.MoreFormats must have prefixes that differ, got %s twice", f.prefix)
		}
	}
	return formats, nil
}

// checkGuesses reports whether a plan can count the look-ups of a network.
func checkGuesses(networks *memory.Limiter, guesses *ratelimit.Plan) error {
	d, err := networks.Peek(context.Background(), "network", guesses)
	if err != nil {
		return fmt.Errorf("apikey: Options.Guesses: %w", err)
	}
	if d.Outcome == ratelimit.Suspended {
		return fmt.Errorf("apikey: Options.Guesses must not be suspended, got %v", guesses)
	}
	return nil
}

// Verify returns the principal of a key. If the key is not valid, the error is one that wraps
// bearer.ErrInvalid, such as [ErrRevoked]. Any other error means that the key could not be
// verified: the store failed, ctx ended, or the network guesses. No error contains the key.
//
// A key with a wrong checksum is rejected without a look-up, and so faster than an
// unknown key. This reveals nothing, because the checksum is public. Unknown, expired
// and revoked keys take equally long.
func (v *Verifier[P]) Verify(ctx context.Context, key string) (P, error) {
	var none P
	format := v.formatOf(key)
	if format == nil {
		return none, errMalformed
	}
	digest := DigestOf(key)
	s := &v.shards[digest[0]%shardCount]
	s.mu.Lock()
	a := v.cachedLocked(s, digest)
	s.mu.Unlock()
	if a != nil {
		return a.principal(v.now)
	}
	// The checksum is checked only now: a cached key has passed the check.
	if format.prefix != "" && !format.Check(key) {
		return none, errMalformed
	}
	a, err := v.lookUp(ctx, s, digest, format.prefix)
	if err != nil {
		return none, fmt.Errorf("apikey: looking up a key: %w", err)
	}
	return a.principal(v.now)
}

// guesser returns the subject that pays for a look-up if the key is not valid, or "" outside of
// package bearer, and an error if it has no units left.
func (v *Verifier[P]) guesser(ctx context.Context, wasInvalid bool) (subject string, err error) {
	if r, _ := ctx.Value(response.RequestKey{}).(*http.Request); r != nil {
		subject = v.source.NetworkSubject(v.source.Addr(r))
		if wasInvalid {
			subject = "again:" + subject
		}
		err = guessing(v.networks.Peek(ctx, subject, v.guesses))
	}
	return subject, err
}

// guessing returns the error for a subject without units. The engine's own errors count nothing.
func guessing(d ratelimit.Decision, err error) error {
	if err != nil || d.RetryAfter == 0 {
		return nil
	}
	return &apierror.Error{
		Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", RetryAfter: d.RetryAfter,
		Message: "The API key was not checked because your network has sent too many keys that are not valid. Wait as long as Retry-After says.",
		Args:    map[string]any{"quota": d.Plan.Quotas()[d.Applicable].String(), "limit": d.Limit(), "cost": d.Cost, "remaining": d.Remaining()},
	}
}

// formatOf returns the format that a key has by its prefix and length, or nil. There is at
// most one: of two prefixes of the same length, a key has one.
func (v *Verifier[P]) formatOf(key string) *Format {
	for _, f := range v.formats {
		if f.prefix == "" || f.hasForm(key) {
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
	if s.valid.find(d) != nil {
		s.valid.put(d, &answer[P]{unknown: true}, v.generation) // too old to be used, but the key stays known
	}
	s.invalid.remove(d)
	// A look-up that is under way may have read the store before the change. It answers
	// the requests that wait for it; new requests do not join it, and it is not cached.
	delete(s.lookups, d)
	s.forgets++
}
