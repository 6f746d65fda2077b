package sqlkeys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A NewKey is an API key that is not stored yet. Times are in the years 1 to 9999, and count in
// microseconds of UTC; what is finer is cut off. Texts must be UTF-8 without NUL.
type NewKey struct {
	Digest   apikey.Digest // the key itself is never stored
	LastFour string        // the last four characters of the key, ASCII, for people to tell keys apart
	Name     string        // what the key is for; can be empty
	Owner    string        // usage is counted for the owner; not empty
	Plan     string        // the name of a plan; not empty
	Quotas   []string      // of a custom plan, as the plan function of NewStore understands them
	Limits   []string      // at most 4 quotas that the key alone must keep beside its plan, such as "100/minute"
	Created  time.Time     // not zero
	Expires  time.Time     // the first instant at which the key is not valid, after Created; zero: never
}

// A Key is a stored API key.
type Key struct {
	ID string // public, as apikey.NewKeyID makes it
	NewKey
	Revoked  time.Time // the first instant at which the key is not valid; zero: not revoked
	LastUsed time.Time // as [NewStore] notes it, up to a minute before the latest use; zero: never noted
}

// The errors of this package wrap one of these. Other errors come from the database.
var (
	ErrNotFound = errors.New("not found")          // there is no such key
	ErrExists   = errors.New("exists already")     // a key with this digest, or a first key
	ErrInactive = errors.New("revoked or expired") // the key
	ErrInvalid  = errors.New("invalid")            // the value breaks a rule of its type
)

// Active reports whether the key is valid at an instant: neither expired nor revoked.
func (k Key) Active(at time.Time) bool {
	return apikey.Record[apikey.Principal]{Expires: k.Expires, Revoked: k.Revoked}.Valid(at) == nil
}

// LimitsPlan returns the limits as a plan, for [apikey.Principal.Limits], or nil if there are
// none. The plan never bans: only the plan of the owner does. An error wraps [ErrInvalid].
func (k NewKey) LimitsPlan() (*ratelimit.Plan, error) {
	switch n := len(k.Limits); {
	case n == 0:
		return nil, nil
	case n > engine.MaxQuotas:
		return nil, fmt.Errorf("sqlkeys: %w: a key must have at most %d limits, got %d", ErrInvalid, engine.MaxQuotas, n)
	}
	quotas := make([]ratelimit.Quota, len(k.Limits))
	for i, text := range k.Limits {
		if err := quotas[i].UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("sqlkeys: %w: key limit: %s", ErrInvalid, strings.TrimPrefix(err.Error(), "ratelimit: "))
		}
	}
	limits, err := ratelimit.NewPlan("key", ratelimit.Penalty{}, quotas...)
	if err != nil {
		return nil, fmt.Errorf("sqlkeys: %w: key limits: %s", ErrInvalid, strings.TrimPrefix(err.Error(), "ratelimit: "))
	}
	return limits.WithScope("API key"), nil
}

// validate refuses a key that cannot be used, or that the table refuses.
func (k NewKey) validate() error {
	_, err := k.LimitsPlan()
	switch {
	case err != nil:
		return err
	case k.Digest == apikey.Digest{} || k.Owner == "" || k.Plan == "" || stored(k.Created).IsZero():
		return fmt.Errorf("sqlkeys: %w: a key must have a digest, an owner, a plan and a time of creation in the years 1 to 9999", ErrInvalid)
	case !storable(strings.Join(append([]string{k.Name, k.Owner, k.Plan}, k.Quotas...), ",")):
		return fmt.Errorf("sqlkeys: %w: the texts of a key must be UTF-8 without NUL", ErrInvalid)
	case len(k.LastFour) != 4 || strings.ContainsFunc(k.LastFour, func(r rune) bool { return r < ' ' || r > '~' }):
		return fmt.Errorf("sqlkeys: %w: the last four characters must be 4 characters of ASCII", ErrInvalid) // without a part of the key
	case !k.Expires.IsZero() && !stored(k.Expires).After(stored(k.Created)):
		return fmt.Errorf("sqlkeys: %w: a key must expire at least a microsecond after it is created, and before the year 10000", ErrInvalid)
	}
	return nil
}

// stored returns a time as it is stored, or the zero time if that is not in the years 1 to 9999.
func stored(at time.Time) time.Time {
	if at = at.UTC().Truncate(time.Microsecond); at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}
	}
	return at
}

// storable reports whether PostgreSQL can have a text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// NewStore returns the store for [apikey.NewVerifier]. The function find is [Table.ByDigest], or
// another one that returns [ErrNotFound] for no key. The function plan returns the plan of a key. If
// there is none, it returns nil or an error, and requests with the key get 503: a Table does not
// know which plans there are.
//
// The function used is [Table.Used], or nil to note nothing. It is called in the background, for
// one key at a time, when a valid key is looked up whose LastUsed is at least a minute old. After
// an error or a panic it is called again at the next look-up. A Verifier looks up a key once in
// [apikey.Options.TTL]: if that is over a minute, LastUsed may be as old.
func NewStore(
	find func(context.Context, apikey.Digest) (Key, error),
	used func(ctx context.Context, id string, at time.Time) error,
	plan func(name string, quotas []string) (*ratelimit.Plan, error),
) apikey.Store[apikey.Principal] {
	return &principals{find: find, used: used, plan: plan, turn: make(chan struct{}, 1)}
}

type principals struct {
	find func(context.Context, apikey.Digest) (Key, error)
	used func(ctx context.Context, id string, at time.Time) error
	plan func(name string, quotas []string) (*ratelimit.Plan, error)

	noting sync.Map      // the IDs of the keys whose use is being noted
	turn   chan struct{} // full while one of them is
}

const (
	noteEvery   = time.Minute
	noteTimeout = 2 * time.Second
)

// note notes in the background that a key is used, unless that was done less than a minute ago.
func (p *principals) note(ctx context.Context, k Key) {
	now := time.Now()
	if p.used == nil || !k.Active(now) || now.Sub(k.LastUsed) < noteEvery {
		return
	}
	if _, noting := p.noting.LoadOrStore(k.ID, nil); noting {
		return
	}
	go func() {
		defer func() {
			p.noting.Delete(k.ID)
			_ = recover() // in this goroutine a panic of the driver would end the process
		}()
		p.turn <- struct{}{}
		defer func() { <-p.turn }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
		defer cancel()
		_ = p.used(ctx, k.ID, now) // else at the next look-up
	}()
}

func (p *principals) Lookup(ctx context.Context, d apikey.Digest) (r apikey.Record[apikey.Principal], err error) {
	k, err := p.find(ctx, d)
	if errors.Is(err, ErrNotFound) {
		return r, apikey.ErrUnknown
	}
	if err != nil {
		return r, err
	}
	plan, err := p.plan(k.Plan, k.Quotas)
	if err != nil || plan == nil {
		return r, fmt.Errorf("sqlkeys: plan %q of key %s: %w", k.Plan, k.ID, cmp.Or(err, ErrNotFound))
	}
	limits, err := k.LimitsPlan()
	if err != nil {
		return r, fmt.Errorf("sqlkeys: key %s: %w", k.ID, err)
	}
	r.Principal = apikey.Principal{KeyID: k.ID, Owner: k.Owner, Plan: plan, Limits: limits}
	r.Expires, r.Revoked = k.Expires, k.Revoked
	p.note(ctx, k)
	return r, nil
}
