package service

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// redisFaults are the errors of Redis that an operator can do something about, by
// the word that they begin with.
var redisFaults = []struct{ word, what, do string }{
	{"OOM", "Redis is full", "raise its maxmemory or remove what else fills it, and keep maxmemory-policy noeviction"},
	{"NOAUTH", "Redis asks for a password", "put it into the URL, redis://:PASSWORD@HOST:PORT, in PETSTORE_REDIS or the settings file"},
	{"WRONGPASS", "Redis refuses the user or the password in the URL", "correct them in PETSTORE_REDIS or the settings file"},
	{"NOPERM", "the Redis user may not do what petstore needs", "allow it ~petstore* +@read +@write +@scripting +@connection +time (ACL SETUSER)"},
	{"READONLY", "this Redis server is a replica and takes no writes", "name its primary in the setting redis"},
	{"MISCONF", "Redis takes no writes because it cannot save to its disk", "see the log of Redis"},
	{"LOADING", "Redis is loading its data", "wait until it has"},
	{"CLUSTERDOWN", "the Redis cluster is down", "see CLUSTER INFO"},
	{"MOVED", "this Redis server is part of a cluster", "name several of its servers in the setting redis"},
}

// A redisFault says why Redis cannot be used and what to do about it.
type redisFault struct{ what, do string }

func (f redisFault) String() string { return f.what + "; " + f.do }

// diagnose returns what is wrong when Redis failed with err.
func diagnose(err error) redisFault {
	for _, f := range redisFaults {
		if saysRedis(err, f.word) {
			return redisFault{f.what, f.do}
		}
	}
	const reach = "see that it runs and that this machine can reach it at the address in the setting redis"
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" && failed.Addr != nil {
		return redisFault{"no connection to Redis at " + failed.Addr.String(), reach}
	}
	if timeout, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout() {
		return redisFault{"no answer from Redis in time", reach}
	}
	return redisFault{"Redis fails", "see the error, and the log of Redis"}
}

// saysRedis reports whether err is, or wraps, an error that Redis sent and that
// begins with a word.
func saysRedis(err error, word string) bool {
	if redis.HasErrorPrefix(err, word) {
		return true
	}
	sent, ok := errors.AsType[redis.Error](err)
	return ok && strings.HasPrefix(sent.Error(), word+" ")
}

// failing describes Redis failing with err, and what is in force meanwhile.
func failing(err error, mode failover.Mode) error {
	return errors.New(diagnose(err).String() + "; in force is on_redis_failure: " + mode.String())
}
