package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Unbanned counts a ban that [ratelimit.Banner].Unban ended before its time.
func (t *Telemetry) Unbanned() {
	if t != nil {
		t.unbanned.n.Add(1)
	}
}

// The engine lists its bans for one gauge, which may mean a walk through all keys of a
// Redis. bansPeriod is the shortest time between two lists, and bansTimeout the time in
// which the engine must answer.
const (
	bansPeriod  = 15 * time.Second
	bansTimeout = 2 * time.Second
)

// ObserveBans reports how many bans are in force. It asks b when the MeterProvider
// collects, but at most every 15 seconds, and waits for at most two seconds. While b
// fails, the gauge has no value.
func (t *Telemetry) ObserveBans(b ratelimit.Banner) error {
	if t == nil {
		return nil
	}
	if nilvalue.In(b) {
		return errors.New("telemetry: ObserveBans: the engine must not be nil")
	}
	active, err := t.gauge("gatehouse.bans.active", "{ban}", "Bans in force")
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	list := banList{banner: b}
	return t.register(func(ctx context.Context, o metric.Observer) error {
		if n, ok := list.len(ctx); ok {
			o.ObserveInt64(active, n)
		}
		return nil
	}, active)
}

// banList remembers how many bans there were.
type banList struct {
	banner ratelimit.Banner

	mu    sync.Mutex
	asked time.Time // zero: never
	n     int64
	ok    bool // the banner has answered
}

func (l *banList) len(ctx context.Context) (n int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked.IsZero() && time.Since(l.asked) < bansPeriod {
		return l.n, l.ok
	}
	ctx, cancel := context.WithTimeout(ctx, bansTimeout)
	defer cancel()
	bans, err := l.banner.Bans(ctx)
	l.asked, l.n, l.ok = time.Now(), int64(len(bans)), err == nil
	return l.n, l.ok
}
