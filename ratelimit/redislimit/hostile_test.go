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
// has done nothing: the books are as before, and the command works once the slot has
// moved. A take needs one key and has no error.
func TestSlotStaysHalfMoved(t *testing.T) {
	testenv.Long(t, "moves a slot of a cluster")
	t.Parallel()
	cluster := redistest.StartCluster(t)
	l := newLimiter(t, clientOfCluster(t, cluster))
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("", penalty, ratelimit.Quota{Limit: 2, Window: fixedwindow.MaxLength})
	subjects, slot := neighbours(t, l, clientOfCluster(t, cluster), 10)
	for i, subject := range subjects {
		for range 1 + i%2*2 { // every other one has its one strike
			if _, err := l.Take(ctx, subject, plan, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Ban(ctx, subjects[0], time.Hour); err != nil {
		t.Fatal(err)
	}
	from := owner(t, cluster, slot)
	m := cluster.Migrate(slot, from, (from+1)%3)
	m.Keys(6)
	var wg sync.WaitGroup
	done := make([]map[string]bool, len(subjects))
	took := make([]ratelimit.Outcome, len(subjects))
	for i, subject := range subjects[1:] {
		i++
		done[i] = map[string]bool{}
		wg.Go(func() { // one after the other: the order tells what is left in the end
			d, err := l.Take(within(t), subject, plan, 1)
			if err != nil {
				t.Errorf("Take: %v", err)
			}
			took[i] = d.Outcome
			for _, operation := range []struct {
				what string
				do   func() error
			}{
				{"Ban", func() error { return l.Ban(within(t), subject, time.Hour) }},
				{"Reset", func() error { return l.Reset(within(t), subject) }},
			} {
				err := operation.do()
				if err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
					t.Errorf("%s: %v, want an error that wraps ErrUnavailable", operation.what, err)
				}
				done[i][operation.what] = err == nil
			}
		})
	}
	wg.Wait()
	m.Finish()
	refused, banned := 0, 1
	for i, subject := range subjects[1:] {
		i++
		want := ratelimit.State{Remaining: 2}
		outcome := ratelimit.Allowed
		switch {
		case done[i]["Reset"]:
		case done[i]["Ban"]:
			outcome = ratelimit.Banned
		default:
			outcome, want.Remaining = ratelimit.Limited, 0
			if i%2 == 1 { // it had its one strike, and its ban starts if the index is at hand
				outcome = took[i]
			}
		}
		if !done[i]["Reset"] {
			refused++
		}
		if outcome == ratelimit.Banned {
			banned++
		}
		d, err := l.Peek(ctx, subject, plan)
		if err != nil || d.Outcome != outcome {
			t.Errorf("subject %d, after %v: %v, %v, want %v", i, done[i], d.Outcome, err, outcome)
		}
		if d.Outcome != ratelimit.Banned && d.States[0].Remaining != want.Remaining {
			t.Errorf("subject %d, after %v: %d are left, want %d", i, done[i], d.States[0].Remaining, want.Remaining)
		}
	}
	if refused == 0 {
		t.Error("no command met the slot that was half moved")
	}
	if bans, err := l.Bans(ctx); err != nil || len(bans) != banned {
		t.Errorf("%d bans are listed, %v, want %d", len(bans), err, banned)
	}
	for _, subject := range subjects {
		if err := l.Ban(ctx, subject, time.Hour); err != nil {
			t.Errorf("Ban after the slot has moved: %v", err)
		}
	}
}

// Whatever bytes a subject has, it is one subject, and no other one.
func TestSubjectsOfAnyBytes(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
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
		if err := addUsage(l, subject, subject, plan, [4]int64{1}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for i, subject := range subjects {
		d, err := l.Peek(ctx, subject, plan)
		if err != nil || d.States[0].Remaining != 5-int64(i%5)-1 {
			t.Errorf("%.20q: %d left, %v, want %d", subject, d.States[0].Remaining, err, 5-i%5-1)
		}
		if err := l.Ban(ctx, subject, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	bans, err := l.Bans(ctx)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := l.Reset(ctx, subject); err != nil {
			t.Error(err)
		}
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
		if err := beside.Reset(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if err := l.Ban(ctx, "a", time.Hour); err != nil {
			t.Fatal(err)
		}
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
			if err := beside.Ban(ctx, "a", time.Hour); err != nil {
				t.Fatal(err)
			}
		}
	}
}
