//go:build unix

package redislimit_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A measure is a hook that notes how much the largest round trip brought.
type measure struct {
	scanned, scripts atomic.Int64 // names from indexes, and bytes from the script
}

func (m *measure) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (m *measure) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (m *measure) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		var names, bytes int64
		for _, cmd := range cmds {
			switch cmd := cmd.(type) {
			case *redis.ScanCmd:
				members, _ := cmd.Val()
				names += int64(len(members) / 2)
			case interface{ Val() string }:
				bytes += int64(len(cmd.Val()))
			}
		}
		m.scanned.Store(max(m.scanned.Load(), names))
		m.scripts.Store(max(m.scripts.Load(), bytes))
		return err
	}
}

// However many bans there are, no round trip of the list is a large one: each has to
// end within the timeouts of the client.
func TestManyBans(t *testing.T) {
	const bans, mostNames, mostBytes = 12_000, 64 * 128, 1024 * 64
	c := clientOf(t, redistest.Start(t))
	m := new(measure)
	c.AddHook(m)
	l := newLimiter(t, c)
	subjects := make([]string, 0, bans)
	for i := range bans {
		subjects = append(subjects, fmt.Sprint("subject ", i))
	}
	must(t, redislimit.Bans(l, subjects, time.Hour))
	// One index is larger than all others, so that Redis keeps it in another form.
	must(t, redislimit.Bans(l, redislimit.SubjectsOfOneIndex(1000), time.Hour))
	m.scripts.Store(0)
	got, err := l.Bans(ctx)
	must(t, err)
	listed := map[string]bool{}
	for _, ban := range got {
		if listed[ban.Subject] {
			t.Errorf("%q is listed twice", ban.Subject)
		}
		listed[ban.Subject] = true
	}
	for _, subject := range append(subjects, redislimit.SubjectsOfOneIndex(1000)...) {
		if !listed[subject] {
			t.Errorf("%q is not listed", subject)
		}
	}
	if n := m.scanned.Load(); n == 0 || n > mostNames {
		t.Errorf("one round trip brought %d names of banned subjects, want at most %d", n, mostNames)
	}
	if n := m.scripts.Load(); n == 0 || n > mostBytes {
		t.Errorf("one round trip brought %d bytes about banned subjects, want at most %d", n, mostBytes)
	}
}
