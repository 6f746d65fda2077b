package redisrate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Options of a [Limiter]. The zero value works.
type Options struct {
	// Windows are the windows that quotas may have. Nil means a second, a
	// minute, an hour and a day. Plans with another window are refused: each
	// window of a subject is a key of its own, and Reset must know them all.
	Windows []time.Duration

	// Prefix begins the names of the keys, after the "rate:" of redis_rate. It
	// keeps services that share a Redis apart, and has no braces. Empty means
	// "gatehouse".
	Prefix string

	// Now is read in place of this machine's clock. It gives the Time of a
	// decision, and the Reset that is counted from it, but decides nothing: that
	// goes by the clock of the Redis server. Nil means the system's.
	Now func() time.Time
}

func (o *Options) validate() error {
	for _, w := range o.Windows {
		// A quota knows what a window may be.
		if _, err := (ratelimit.Quota{Limit: 1, Window: w}).MarshalText(); err != nil {
			return fmt.Errorf("redisrate: Options.Windows: %w", err)
		}
	}
	if strings.ContainsAny(o.Prefix, "{}") {
		return fmt.Errorf("redisrate: Options.Prefix: %q has a brace", o.Prefix)
	}
	return nil
}

func (o *Options) setDefaults() {
	if o.Windows == nil {
		o.Windows = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	}
	if o.Prefix == "" {
		o.Prefix = "gatehouse"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// A keyspace names the keys of one window:
//
//	gatehouse:{owner:17}:60
//
// The braces make the subject the hash tag, so that a cluster keeps what belongs
// to a subject in one place. What follows them holds no brace, so that no two
// pairs of a subject and a window have the same key, whatever a subject holds.
type keyspace struct {
	window     time.Duration
	head, tail string
}

func newKeyspace(prefix string, window time.Duration) keyspace {
	return keyspace{window, prefix + ":{", "}:" + strconv.FormatInt(int64(window/time.Second), 10)}
}

func (k *keyspace) key(subject string) string { return k.head + subject + k.tail }
