package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/reference/internal/logging"
)

// redisPermissions are the permissions of package redislimit for keys with the prefix
// petstore. CLUSTER SLOTS and ASKING are for a cluster; INFO is for its warning about
// eviction.
const redisPermissions = "~petstore{* +evalsha +eval +time +mget +set +del +exists +zadd +zrem +zremrangebyscore " +
	"+zrevrange +zscan +expireat +cluster|slots +asking +ping +info"

const addPassword = "add it to the URL, redis://:PASSWORD@HOST:PORT, in the setting redis"

// redisFaults are the errors of Redis that an operator can fix, by their first words.
var redisFaults = []struct{ words, what, do string }{
	{"OOM", "Redis is full", "raise its maxmemory or remove other data, and keep maxmemory-policy noeviction"},
	{"NOAUTH", "Redis asks for a password", addPassword},
	{"Protocol error: unauthenticated", "Redis asks for a password", addPassword}, // if the command is long
	{"WRONGPASS", "Redis refuses the user or the password in the URL", "correct them in the setting redis; a user that only ACL SETUSER created is gone after a restart of Redis"},
	{"NOPERM", "the Redis user lacks a permission", "grant it with ACL SETUSER: " + redisPermissions},
	{"READONLY", "this Redis server is a replica and refuses writes", "set redis to the address of its primary"},
	{"MISCONF", "Redis refuses writes because it cannot save to its disk", "see the log of Redis"},
	{"LOADING", "Redis is loading its data", "wait until it is ready"},
	{"CLUSTERDOWN", "the Redis cluster is down", "see the output of CLUSTER INFO"},
	{"MOVED", "this Redis server is part of a cluster", "set redis to the addresses of several of its servers"},
}

// A redisFault says why Redis cannot be used and what to do about it.
type redisFault struct{ what, do string }

func (f redisFault) String() string { return f.what + "; " + f.do }

// diagnose returns what is wrong with Redis if it fails with err.
func diagnose(err error) redisFault {
	for _, f := range redisFaults {
		if redis.HasErrorPrefix(err, f.words) {
			return redisFault{f.what, f.do}
		}
	}
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return redisFault{"the certificate of Redis is refused: " + refused.Err.Error(),
			"correct the host in the URL or the certificate; if an authority of your own signed it, name a file with its certificate in SSL_CERT_FILE and restart the server"}
	}
	const reach = "check that it runs and that this machine can reach it at the address in the setting redis"
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" && failed.Addr != nil {
		return redisFault{"no connection to Redis at " + failed.Addr.String(), reach}
	}
	if timeout, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout() {
		return redisFault{"no answer from Redis in time", reach}
	}
	return redisFault{"calls to Redis fail", "see the error in the log of the server, and the log of Redis"}
}

// failing returns the error for readiness while Redis fails with err.
func failing(err error, mode string) error {
	return errors.New(diagnose(err).String() + "; until then on_redis_failure: " + mode + " is in force")
}

// redisLogPeriod is the time between two lines about the same fault of Redis.
const redisLogPeriod = time.Minute

// circuitLog writes to the log when Redis cannot be used, and when it answers again.
// During an outage the circuit opens again after each probe, every few seconds, so the
// same fault is written once in each redisLogPeriod.
type circuitLog struct {
	logger *slog.Logger
	mode   string // on_redis_failure

	mu      sync.Mutex
	fault   string    // the last one that was written; "" if Redis answered after it
	written time.Time // when
}

// changed is for [failover.Options] OnChange.
func (l *circuitLog) changed(failure error) {
	if failure != nil {
		l.failed(failure)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = ""
	l.logger.Info("Redis answers again", slog.String("limits", "shared"))
}

func (l *circuitLog) failed(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fault, now := diagnose(cause), time.Now()
	if fault.what == l.fault && now.Sub(l.written) < redisLogPeriod {
		return
	}
	l.fault, l.written = fault.what, now
	l.logger.Error("Redis cannot be used: "+fault.what, slog.String("do", fault.do),
		slog.String("limits", l.mode), slog.Any("error", cause))
}

// redisLog writes messages of go-redis to the log, at most one in a minute: while Redis
// cannot be reached there is one for each attempt to connect. go-redis has one logger
// for the process.
type redisLog struct {
	logger *slog.Logger
	limit  logging.Minutely
}

// Printf is for [redis.SetLogger].
func (l *redisLog) Printf(ctx context.Context, format string, args ...any) {
	if dropped, ok := l.limit.Pass(); ok {
		l.logger.WarnContext(ctx, "Redis client", slog.String("message", fmt.Sprintf(format, args...)), slog.Int("dropped", dropped))
	}
}
