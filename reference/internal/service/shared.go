package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

const (
	// redisBudget is how long a request waits for Redis before it is decided
	// without.
	redisBudget = 250 * time.Millisecond
	// redisTimeout bounds every step of a call of Redis.
	redisTimeout = 200 * time.Millisecond
)

// openShared opens the engine that all servers with this Redis share. It starts
// without Redis as well, in the mode that the settings have for that, and logs why.
func (s *state) openShared(ctx context.Context, c *config.Config) (*shared, error) {
	// The client would write a line of its own to standard error for each failed
	// attempt to connect. Failures are logged by logChange.
	logging.Disable()
	client, err := redisClient(c.Redis)
	if err != nil {
		return nil, SettingError{c.Errorf("redis", "%v", err)}
	}
	s.closers = append(s.closers, client)
	primary, err := redislimit.New(client, redislimit.Options{Prefix: "petstore"})
	if err != nil {
		return nil, err
	}
	local, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	mode := c.OnFailure
	limiter, err := failover.New(primary, mode, failover.Options{Local: local, Budget: redisBudget, OnChange: func(change failover.Change) {
		logChange(s.logger, mode, change)
	}})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, unmerged{limiter})
	sh := &shared{limiter, primary}
	if err := sh.probe(ctx); err != nil {
		logFailure(s.logger, mode, err)
	}
	return sh, nil
}

// unmerged explains the error of closing an engine while Redis does not answer.
type unmerged struct{ *failover.Limiter }

func (u unmerged) Close() error {
	if err := u.Limiter.Close(); err != nil {
		return fmt.Errorf("requests admitted while Redis could not be used are not counted in Redis: %w", err)
	}
	return nil
}

// redisClient returns a client of one server, or of a cluster if there are
// several addresses.
func redisClient(urls []string) (redis.UniversalClient, error) {
	all := &redis.UniversalOptions{
		DialTimeout: redisTimeout, ReadTimeout: redisTimeout, WriteTimeout: redisTimeout,
		DialerRetries: 1, MaxRetries: -1, // the circuit breaker knows better when to try again
	}
	for i, url := range urls {
		one, err := redis.ParseURL(url)
		if err != nil {
			return nil, fmt.Errorf("address %d: %w", i+1, withoutURL(err))
		}
		all.Addrs = append(all.Addrs, one.Addr)
		all.Username, all.Password, all.DB = one.Username, one.Password, one.DB
		if one.TLSConfig != nil {
			all.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	if len(urls) > 1 && all.DB != 0 {
		return nil, errors.New("a cluster has no numbered databases; leave the number out")
	}
	return redis.NewUniversalClient(all), nil
}

// withoutURL keeps the password, which errors about URLs repeat, out of messages.
func withoutURL(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

func logChange(logger *slog.Logger, mode failover.Mode, change failover.Change) {
	switch {
	case change.To == failover.CircuitOpen && change.Cause != nil:
		logFailure(logger, mode, change.Cause)
	case change.To == failover.CircuitClosed:
		logger.Info("Redis answers again", slog.String("limits", "shared"))
	}
}

func logFailure(logger *slog.Logger, mode failover.Mode, cause error) {
	fault := diagnose(cause)
	logger.Error("Redis cannot be used: "+fault.what, slog.String("do", fault.do),
		slog.String("limits", mode.String()), slog.Any("error", cause))
}

// shared is the engine that all servers with one Redis share.
type shared struct {
	*failover.Limiter
	primary *redislimit.Limiter
}

var (
	errUnbannedHere = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
		"Redis cannot be used, so the subject is unbanned on this server only. Repeat the request when Redis can be used again.")
	errNotUnbanned = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
		"Redis cannot be used, so no ban has ended. Repeat the request when Redis can be used again.")
)

// Unban implements [ratelimit.Banner], with errors that an operator can read.
func (s *shared) Unban(ctx context.Context, subject string) (bool, error) {
	unbanned, err := s.Limiter.Unban(ctx, subject)
	switch {
	case errors.Is(err, failover.ErrLocalOnly):
		err = errUnbannedHere.Wrap(err)
	case errors.Is(err, ratelimit.ErrUnavailable):
		err = errNotUnbanned.Wrap(err)
	}
	return unbanned, err
}

// probeSubject is the subject that package failover probes the primary with, too.
const probeSubject = "failover:probe"

// probePlan is the plan of a probe. Its key lasts no longer than it must.
var probePlan = ratelimit.MustPlan("probe", ratelimit.Penalty{}, ratelimit.Quota{Limit: ratelimit.MaxLimit, Window: time.Second})

// probe asks Redis for a decision, since a Redis that is full or refuses the script
// still answers a PING.
func (s *shared) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redisBudget)
	defer cancel()
	_, err := s.primary.Take(ctx, probeSubject, probePlan, 1)
	return err
}

// err is the check of readiness: a server that limits by itself is as good as any
// other that cannot reach Redis. It does not wait for requests to fail first.
func (s *shared) err(ctx context.Context) error {
	if err := s.probe(ctx); err != nil {
		return failing(err, s.Mode())
	}
	if s.Circuit() != failover.CircuitClosed {
		return fmt.Errorf("the shared engine, Redis, answers again and is about to be used; until then on_redis_failure: %v is in force", s.Mode())
	}
	return nil
}
