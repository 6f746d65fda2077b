package ululelimit

import (
	"strconv"
	"time"
)

// A keyspace names the keys of one window: "60:owner:17". Whatever bytes subjects have,
// the keys of two windows differ.
type keyspace struct {
	window time.Duration
	head   string
}

func newKeyspace(prefix string, window time.Duration) keyspace {
	return keyspace{window, prefix + strconv.FormatInt(int64(window/time.Second), 10) + ":"}
}

func (k *keyspace) key(subject string) string { return k.head + subject }
