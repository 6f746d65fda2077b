//go:build unix

package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// Of two masters one stops answering. The log says so, requests for its subjects fail at
// once while one of them waits, and those for the other subjects are decided. Later it is
// gone, and then the other one too.
func TestHungMasterOfCluster(t *testing.T) {
	one, two := miniredis.RunT(t), miniredis.RunT(t)
	proxy, addr := redistest.StartProxy(t, one.Addr()), two.Addr()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{
				{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: proxy.Addr}}},
				{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}},
			}, nil
		},
		ReadTimeout: 300 * time.Millisecond, DialerRetries: 1, MaxRetries: -1,
	})
	t.Cleanup(func() { client.Close() })
	var log testcheck.Log
	l, err := redislimit.New(client, redislimit.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	take := func(subject string) error {
		_, err := l.Take(ctx, subject, lasting(1<<30), 1)
		return err
	}
	decided := func(subject string) func() bool { return func() bool { return take(subject) == nil } }
	var stuck, other string
	for i := 0; stuck == "" || other == ""; i++ {
		subject := fmt.Sprint("subject ", i)
		eventually(t, "a decision", decided(subject))
		if one.Exists(redislimit.Key(l, subject)) {
			stuck = subject
		} else {
			other = subject
		}
	}
	eventually(t, "the engine knows the masters", func() bool { return redislimit.KnowsMasters(l) })

	port := proxy.Addr[strings.LastIndex(proxy.Addr, ":"):] // the client knows no host of a fake cluster
	proxy.Slow(time.Second)                                 // longer than the client waits
	var atOnce atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for deadline := time.Now().Add(time.Minute); !atOnce.Load() && time.Now().Before(deadline); {
				err := take(stuck)
				if err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
					t.Errorf("from a master that hangs: %v, want an error that wraps ErrUnavailable", err)
				}
				if errors.Is(err, partial.ErrOutage) {
					atOnce.Store(true)
				}
			}
		})
	}
	if wg.Wait(); !atOnce.Load() {
		t.Fatal("no request failed at once within a minute, beside one that waits for the master that hangs")
	}
	eventually(t, "a decision about a subject of the other master", decided(other))
	eventually(t, "a warning", func() bool {
		return strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "a master of the cluster does not answer") &&
			strings.Contains(log.String(), port)
	})

	proxy.Slow(0)
	eventually(t, "a decision about a subject of the master that hung", decided(stuck))
	eventually(t, "a line that the master answers", func() bool {
		return strings.Contains(log.String(), `level=INFO msg="redislimit: requests for the subjects of the master are decided again" master=`) && strings.Count(log.String(), port) >= 2
	})

	oneIsAway := func() bool { return take(other) == nil && errors.Is(take(stuck), partial.ErrOutage) }
	for _, refusal := range []string{"LOADING the data set", "NOREPLICAS not enough good replicas", "OOM command not allowed", "BUSY", "READONLY"} {
		one.SetError(refusal)
		eventually(t, refusal+" of one master, while the other answers", oneIsAway)
	}
	one.Close()
	eventually(t, "an error of one master, while the other answers", oneIsAway)
	two.Close()
	eventually(t, "an error of the whole cluster", func() bool {
		_ = take(other)
		err := take(stuck)
		return errors.Is(err, ratelimit.ErrUnavailable) && !errors.Is(err, partial.ErrOutage)
	})
}
