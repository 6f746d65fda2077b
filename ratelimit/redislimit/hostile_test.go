//go:build unix

package redislimit_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A ban or a reset whose slot stays half moved ends with an error after a while, and
// has done nothing. It works once the slot has moved.
func testSlotStaysHalfMoved(t *testing.T, cluster *redistest.Cluster) {
	testenv.Long(t, "waits for a slot of a cluster")
	l := newLimiter(t, clientOfCluster(t, cluster))
	subjects, slot := neighbours(t, l, clientOfCluster(t, cluster), 10)
	for _, subject := range subjects {
		must(t, l.Ban(ctx, subject, time.Hour, ""))
	}
	from := owner(t, cluster, slot)
	m := cluster.Migrate(slot, from, (from+1)%3)
	m.Keys(6)
	banned := len(subjects)
	var wg sync.WaitGroup
	errs := make([]error, len(subjects))
	for i, subject := range subjects {
		wg.Go(func() { errs[i] = l.Reset(within(t), subject) })
	}
	wg.Wait()
	m.Finish()
	for i, subject := range subjects {
		d, err := l.Peek(ctx, subject, lasting(2))
		if err != nil || (d.Outcome == ratelimit.Banned) != (errs[i] != nil) || errs[i] != nil && !errors.Is(errs[i], ratelimit.ErrUnavailable) {
			t.Errorf("a reset with error %v left a subject that is %v, %v", errs[i], d.Outcome, err)
		}
		if errs[i] == nil {
			banned--
		}
	}
	if bans, err := l.Bans(ctx); err != nil || len(bans) != banned || banned == 0 {
		t.Errorf("%d bans are listed, %v, want %d, and at least one", len(bans), err, banned)
	}
	for _, subject := range subjects {
		if err := l.Reset(ctx, subject); err != nil {
			t.Errorf("Reset after the slot has moved: %v", err)
		}
	}
}

// Whatever bytes a subject has, it is one subject, and no other one.
func testSubjectsOfAnyBytes(t *testing.T, cluster *redistest.Cluster) {
	l := newLimiter(t, clientOfCluster(t, cluster))
	plan := ratelimit.MustPlan("", ratelimit.DefaultPenalty(), ratelimit.Quota{Limit: 5, Window: fixedwindow.MaxLength})
	long := strings.Repeat("x", 1<<16)
	subjects := []string{
		"{a}", "{a", "a}", "}{", "{}", "{}a", "a", "\x00", "\x00\x00", "\n", "\r\n", "a\nb", "a\r\n$3\r\nDEL", "\xff\xfe", " ",
		"*", "a*", "[a]", ":", "#", "!", "{000}", "test1{000}:a", long, long + "x", "x" + long + "\x00", strings.Repeat("y", 128), strings.Repeat("y", 129),
		strings.Repeat("\x00", 129), strings.Repeat("{", 500),
	}
	for i, subject := range subjects {
		for range i % 5 {
			if d, err := l.Take(ctx, subject, plan, 1); err != nil || !d.Allowed() {
				t.Fatalf("%.20q: %v, %v", subject, d.Outcome, err)
			}
		}
		must(t, addUsage(l, subject, subject, plan, [4]int64{1}, time.Now()))
	}
	for i, subject := range subjects {
		d, err := l.Peek(ctx, subject, plan)
		if err != nil || d.States[0].Remaining != 5-int64(i%5)-1 {
			t.Errorf("%.20q: %d left, %v, want %d", subject, d.States[0].Remaining, err, 5-i%5-1)
		}
		must(t, l.Ban(ctx, subject, time.Hour, ""))
	}
	bans, err := l.Bans(ctx)
	must(t, err)
	var banned []string
	for _, ban := range bans {
		banned = append(banned, ban.Subject)
	}
	slices.Sort(banned)
	slices.Sort(subjects)
	if !slices.Equal(banned, subjects) {
		t.Errorf("%d subjects are banned, want the %d that were", len(banned), len(subjects))
	}
	for _, subject := range subjects {
		if unbanned, err := l.Unban(ctx, subject); err != nil || !unbanned {
			t.Errorf("Unban of %.20q: %v, %v", subject, unbanned, err)
		}
		must(t, l.Reset(ctx, subject))
		if d, err := l.Peek(ctx, subject, plan); err != nil || d.States[0].Remaining != 5 {
			t.Errorf("%.20q after a reset: %d left, %v", subject, d.States[0].Remaining, err)
		}
	}
}

// A user loses a right at run time.
func TestRightsAreLost(t *testing.T) {
	s := redistest.Start(t)
	rule := documentedUser(t)
	plan := ratelimit.MustPlan("", ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}, ratelimit.Quota{Limit: 5, Window: fixedwindow.MaxLength})
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "gatehouse", Password: "secret"})
	defer c.Close()
	for _, command := range commandsOf(rule) {
		setUser(t, s, rule)
		l, _ := redislimit.New(c, redislimit.Options{})
		beside, _ := redislimit.New(clientOf(t, s), redislimit.Options{})
		must(t, beside.Reset(ctx, "a"))
		must(t, l.Ban(ctx, "a", time.Hour, ""))
		for _, what := range []string{"Reset", "Unban"} {
			setUser(t, s, rule+" -"+command)
			var err error
			if what == "Unban" {
				_, err = l.Unban(ctx, "a")
			} else {
				err = l.Reset(ctx, "a")
			}
			if err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("without %s: %v, want an error that wraps ErrUnavailable", command, err)
			}
			d, err2 := beside.Peek(ctx, "a", plan)
			bans, err3 := beside.Bans(ctx)
			if err2 != nil || err3 != nil {
				t.Fatal(err2, err3)
			}
			if (d.Outcome == ratelimit.Banned) != (len(bans) == 1) {
				t.Errorf("%s without %s: %v; the subject is %v and %d bans are listed", what, command, err, d.Outcome, len(bans))
			}
			must(t, beside.Ban(ctx, "a", time.Hour, ""))
		}
	}
}
