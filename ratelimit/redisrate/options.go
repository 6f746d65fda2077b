package redisrate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
)

// Options of a [Limiter]. The zero value works.
type Options struct {
	// Windows are the windows that quotas may have, whole seconds from 1s to
	// 366 days. Nil means a second, a minute, an hour and a day. Plans
	// with another window are refused: each window of a subject has a key of its own,
	// and Reset must know them all.
	Windows []time.Duration

	// Prefix begins the names of the keys, after the "rate:" of redis_rate. It
	// separates services that share a Redis, and has no braces. Empty means
	// "gatehouse".
	Prefix string
}

// complete sets the defaults.
func (o *Options) complete() error {
	for _, w := range o.Windows {
		if w < time.Second || w > fixedwindow.MaxLength || w%time.Second != 0 {
			return fmt.Errorf("redisrate: Options.Windows must be whole seconds from 1s to %dh, got %v", fixedwindow.MaxLength/time.Hour, w)
		}
	}
	if strings.ContainsAny(o.Prefix, "{}") {
		return fmt.Errorf("redisrate: Options.Prefix must have no braces, got %q", o.Prefix)
	}
	if o.Windows == nil {
		o.Windows = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	}
	o.Prefix = cmp.Or(o.Prefix, "gatehouse")
	return nil
}

// A keyspace names the keys of one window:
//
//	gatehouse:{owner:17}:60
//
// The braces make the subject the hash tag, so that a cluster keeps all keys of a
// subject on one master. What follows them has no brace, so that no two pairs of a
// subject and a window have the same key, whatever bytes a subject has.
type keyspace struct {
	window     time.Duration
	head, tail string
}

func newKeyspace(prefix string, window time.Duration) keyspace {
	return keyspace{window, prefix + ":{", "}:" + strconv.FormatInt(int64(window/time.Second), 10)}
}

func (k *keyspace) key(subject string) string { return k.head + subject + k.tail }
