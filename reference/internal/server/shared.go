package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/lease"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// defaultRedisBudget is how long a request waits for a decision of Redis.
const defaultRedisBudget = 250 * time.Millisecond

// openShared opens the engine that all servers with this Redis share. If Redis cannot
// be used, it logs why and starts in the mode that on_redis_failure sets.
func (s *server) openShared(ctx context.Context) error {
	redis.SetLogger(&redisLog{logger: s.Logger}) // otherwise it writes to standard error
	client, err := redisClient(s.start.Redis, s.redisBudget)
	if err != nil {
		return SettingError{s.start.Errorf("redis", "%v", err)}
	}
	s.closers = append(s.closers, client.Close)
	primary, err := redislimit.New(client, redislimit.Options{Prefix: "petstore", Logger: s.Logger, Observe: func(requests int, took time.Duration, _ error) {
		s.observer.RedisBatch(requests, took)
	}})
	if err != nil {
		return err
	}
	if s.embedded, err = memory.New(memory.Options{}); err != nil {
		return err
	}
	log := &circuitLog{logger: s.Logger, mode: s.start.OnFailure}
	opts := failover.Options{JournalSize: int(s.embedded.Stats().Bound), Budget: s.redisBudget, OnChange: log.changed}
	if s.start.OnFailure == "local" {
		opts.Local = s.embedded
	}
	sh := &shared{primary: primary, budget: s.redisBudget, mode: s.start.OnFailure}
	var front ratelimit.Limiter = primary
	if s.start.RedisShares {
		if sh.shares, err = lease.New(primary); err != nil {
			return err
		}
		front = sh.shares
	}
	if sh.Limiter, err = failover.New(front, opts); err != nil {
		return err
	}
	s.closers = append(s.closers, sh.Close)
	if err := sh.probe(ctx); err != nil {
		log.failed(err)
	}
	s.shared, s.limiter = sh, sh
	return nil
}

// redisClient returns a client of one server, or of a cluster if there are several
// addresses. A request waits for it for at most budget, so each step of a call has
// less.
func redisClient(urls []string, budget time.Duration) (redis.UniversalClient, error) {
	timeout := budget * 4 / 5
	all := &redis.UniversalOptions{
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
		DialerRetries: 1, MaxRetries: -1, // the circuit breaker decides when to try again
	}
	for _, url := range urls {
		one, err := redis.ParseURL(url) // the settings have checked it
		if err != nil {
			return nil, err
		}
		all.Addrs = append(all.Addrs, one.Addr)
		all.Username, all.Password, all.DB = one.Username, one.Password, one.DB
		if one.TLSConfig != nil {
			all.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	return redis.NewUniversalClient(all), nil
}

// shared is an engine that all servers with the same Redis share.
type shared struct {
	*failover.Limiter
	primary ratelimit.Limiter
	shares  *lease.Limiter // between the two; nil: redis_shares is off
	budget  time.Duration  // of a probe
	mode    string         // on_redis_failure
}

// Close also returns the unused units of shares to Redis. Its error says that Redis does not
// count the requests that were admitted without it.
func (s *shared) Close() error {
	err := s.Limiter.Close()
	if s.shares != nil {
		s.shares.Close()
	}
	if err != nil {
		return fmt.Errorf("cannot count in Redis the requests that were admitted without it: %w", err)
	}
	return nil
}

// probePlan is the plan of a probe. Its window is short, so that its keys expire soon.
var probePlan = ratelimit.MustPlan("probe", ratelimit.Penalty{}, ratelimit.Quota{Limit: fixedwindow.MaxUnits, Window: time.Second})

// probe asks Redis for decisions, because Redis answers PING even if it is full or refuses the
// script. One decision is enough: a master of a cluster that is away affects only its subjects.
// If there is none, the error is a refusal of Redis before one of a connection: after some
// refusals Redis closes the connection, which fails the next request.
func (s *shared) probe(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.budget)
	defer cancel()
	const subjects = 16 // so many that each of a few masters is likely to have one
	answers := make(chan error, subjects)
	for i := range subjects {
		go func() {
			_, err := s.primary.Take(ctx, fmt.Sprint("failover:probe:", i), probePlan, 1)
			answers <- err
		}()
	}
	for range subjects {
		answer := <-answers
		if answer == nil {
			return nil
		}
		if _, refused := errors.AsType[redis.Error](answer); refused || err == nil {
			err = answer
		}
	}
	return err
}

// err is the check of readiness. It probes Redis, so that it reports a failure before
// any request has failed.
func (s *shared) err(ctx context.Context) error {
	if err := s.probe(ctx); err != nil {
		return fmt.Errorf("Redis cannot be used; until it can, on_redis_failure: %s is in force: %w", s.mode, err)
	}
	if s.Open() {
		return fmt.Errorf("limits are about to be shared through Redis again; until then on_redis_failure: %v is in force", s.mode)
	}
	return nil
}

// Ban implements [engine.Banner], with errors that an operator can read. So do Unban
// and Bans.
func (s *shared) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	return explainBan(s.Limiter.Ban(ctx, subject, length, reason), "the subject is banned on this server, and perhaps on no other", "the ban may not be in force")
}

// Unban implements [engine.Banner].
func (s *shared) Unban(ctx context.Context, subject string) (bool, error) {
	unbanned, err := s.Limiter.Unban(ctx, subject)
	return unbanned, explainBan(err, "the subject is unbanned on this server, and perhaps on no other", "the ban may still be in force")
}

// Bans implements [engine.Banner].
func (s *shared) Bans(ctx context.Context) ([]engine.Ban, error) {
	bans, err := s.Limiter.Bans(ctx)
	return bans, explainBan(err, "", "the bans cannot be listed")
}

// banRetry is when an operator may repeat a command that needs Redis.
const banRetry = 5 * time.Second

// explainBan returns the error that an operator reads about a command that Redis has not
// confirmed. It may have made it, and its answer was lost.
func explainBan(err error, here, nowhere string) error {
	effect := nowhere
	switch {
	case errors.Is(err, failover.ErrLocalOnly):
		effect = here
	case !errors.Is(err, ratelimit.ErrUnavailable):
		return err
	}
	unavailable := apierror.New(http.StatusServiceUnavailable, "unavailable",
		"Redis cannot be used, so "+effect+". Repeat the request when Redis can be used again.")
	unavailable.RetryAfter = banRetry
	return unavailable.Wrap(err)
}
