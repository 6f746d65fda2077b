package benchmarks

import (
	"context"
	"testing"
	"time"

	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A turnover is an engine to be filled with keys that then expire.
type turnover struct {
	take engine
	// expire has all keys expire and be forgotten. It calls timed, which takes
	// for a key, all the while. Nil: the engine never forgets anything.
	expire func(timed func(key string))
	// after checks what is left. It may be nil.
	after func(b *testing.B)
}

// sweepAfter is how often engines sweep that do so from a timer: a million keys
// are there by then.
func sweepAfter() time.Duration { return scaled(3 * time.Second) }

// turnovers are the engines in memory, set up to forget. Each has its own way.
var turnovers = []struct {
	name string
	keys int
	peer string
	new  func(b *testing.B, keys int) turnover
}{
	{"1M", 1_000_000, "gatehouse", turnGatehouse},
	{"10M", 10_000_000, "gatehouse", turnGatehouse},
	{"1M", 1_000_000, "sethvargo", turnSethvargo},
	{"1M", 1_000_000, "xtime", func(b *testing.B, _ int) turnover { return turnover{take: newXTime(b, roomy, roomy)} }},
	{"1M", 1_000_000, "throttled", turnThrottled},
	{"1M", 1_000_000, "httprate", turnHTTPRate},
	{"1M", 1_000_000, "ulule", turnUlule},
	{"1M", 1_000_000, "tollbooth", turnTollbooth},
	{"1M", 1_000_000, "none", func(*testing.B, int) turnover { return turnover{take: func(string) bool { return true }} }},
	{"10M", 10_000_000, "none", turnNothing},
}

// BenchmarkTurnover fills an engine with keys and has them expire, and reports
// the longest call of each half, and how many took over a millisecond. ns/op is
// a call while filling. A call is longer, too, when the machine does something
// else meanwhile: peer=none shows how long. With one processor (-cpu 1) a sweep
// in a goroutine delays calls even if it holds no lock.
func BenchmarkTurnover(b *testing.B) {
	for _, t := range turnovers {
		b.Run("keys="+t.name+"/peer="+t.peer, func(b *testing.B) {
			if t.keys > 1_000_000 {
				long(b)
			}
			for b.Loop() {
				keys := scaled(t.keys)
				turn := t.new(b, keys)
				heap() // no collection of what was before
				var w stopwatch
				timed := func(key string) {
					if !w.time(turn.take, key) {
						b.Fatalf("%s was denied, want nobody denied", key)
					}
				}
				for i := range uint64(keys) {
					timed(newKey(i))
				}
				w.report(b, "fill")
				b.ReportMetric(float64(w.total.Nanoseconds())/float64(keys), "ns/op")
				if turn.expire == nil {
					continue
				}
				w = stopwatch{}
				turn.expire(timed)
				w.report(b, "expire")
				if turn.after != nil {
					turn.after(b)
				}
			}
		})
	}
}

// A stopwatch times calls.
type stopwatch struct {
	total, longest time.Duration
	long           int // calls over a millisecond
	rested         time.Time
}

func (w *stopwatch) time(take engine, key string) (admitted bool) {
	start := time.Now()
	admitted = take(key)
	d := time.Since(start)
	w.total += d
	w.longest = max(w.longest, d)
	if d > time.Millisecond {
		w.long++
	}
	w.rest(start)
	return admitted
}

// rest rests every now and then.
func (w *stopwatch) rest(now time.Time) {
	switch {
	case w.rested.IsZero():
		w.rested = now
	case now.Sub(w.rested) > 500*time.Millisecond:
		rest()
		w.rested = time.Now()
	}
}

func (w *stopwatch) report(b *testing.B, of string) {
	b.ReportMetric(float64(w.longest.Nanoseconds())/1e6, of+"-longest-ms")
	b.ReportMetric(float64(w.long), of+"-over-1ms")
}

// displace is the expire of an engine in which new keys displace the old ones.
func displace(keys int) func(timed func(key string)) {
	return func(timed func(key string)) {
		for i := range uint64(keys) {
			timed(newKey(uint64(keys) + i))
		}
	}
}

// sweep is the expire of an engine that was made now and sweeps every sweepAfter.
func sweep() func(timed func(key string)) {
	made := time.Now()
	return func(timed func(key string)) {
		every := sweepAfter()
		next := time.Since(made).Truncate(every) + every
		for key := newKey(0); time.Since(made) < next+every/4; {
			timed(key)
		}
	}
}

// turnGatehouse moves the clock past both windows. New keys make the engine drop
// the old ones, in small steps.
func turnGatehouse(b *testing.B, keys int) turnover {
	var jump time.Duration
	l := newMemory(memory.Options{
		MaxSubjects: keys + keys/8,
		Now:         func() time.Time { return time.Now().Add(jump) },
	})
	fresh := displace(keys)
	return turnover{
		take: takeFrom(l, plan(roomy, roomy)),
		expire: func(timed func(key string)) {
			jump = 2 * dayWindow
			fresh(timed)
		},
		after: func(b *testing.B) {
			if s := l.Stats(); s.Evicted > 0 || s.Subjects > s.Bound {
				b.Errorf("%+v: want none evicted, since all had expired", s)
			}
		},
	}
}

// turnNothing passes the time that a call takes in the place of an engine.
func turnNothing(_ *testing.B, keys int) turnover {
	take := func(string) bool {
		for start := time.Now(); time.Since(start) < 800*time.Nanosecond; {
		}
		return true
	}
	return turnover{take: take, expire: displace(keys)}
}

// turnThrottled has a bound and no expiry: new keys displace those that were not
// used for the longest time.
func turnThrottled(b *testing.B, keys int) turnover {
	return turnover{take: newThrottledOf(keys, roomy, roomy), expire: displace(keys)}
}

// turnSethvargo sweeps from a timer, under its one lock.
func turnSethvargo(b *testing.B, _ int) turnover {
	return turnover{
		take:   newSethvargoOf(b, memorystore.Config{SweepInterval: sweepAfter(), SweepMinTTL: 1}, roomy, roomy),
		expire: sweep(),
	}
}

// turnUlule sweeps from a timer.
func turnUlule(*testing.B, int) turnover {
	return turnover{
		// Both windows are so short that they are over by then.
		take:   newUluleOf(sweepAfter(), roomy, sweepAfter()/2, roomy, sweepAfter()/2),
		expire: sweep(),
	}
}

// turnHTTPRate clears a map when a window ends, under its one lock. The window is
// an argument here, so that it can end without a wait.
func turnHTTPRate(*testing.B, int) turnover {
	type quota struct {
		counter httprate.LimitCounter
		window  time.Duration
		began   time.Time
	}
	var quotas []*quota
	for _, window := range []time.Duration{minuteWindow, dayWindow} {
		quotas = append(quotas, &quota{httprate.NewLocalLimitCounter(window), window, time.Now().UTC().Truncate(window)})
	}
	return turnover{
		take: func(key string) bool {
			for _, q := range quotas {
				current, previous, _ := q.counter.Get(key, q.began, q.began.Add(-q.window))
				if current+previous >= roomy {
					return false
				}
				_ = q.counter.IncrementBy(key, q.began, 1)
			}
			return true
		},
		expire: func(timed func(key string)) {
			key := newKey(0)
			for range 3 { // the counts of one window serve the next one, too
				for _, q := range quotas {
					q.began = q.began.Add(q.window)
				}
				for range 1000 {
					timed(key)
				}
			}
		},
	}
}

// turnTollbooth forgets when it is told to, under its one lock.
func turnTollbooth(*testing.B, int) turnover {
	quota := func(window time.Duration) *tollboothlimiter.Limiter {
		return newTollboothLimiter(roomy, window).SetTokenBucketExpirationTTL(sweepAfter())
	}
	m, d := quota(minuteWindow), quota(dayWindow)
	return turnover{
		take: func(key string) bool { return !m.LimitReached(key) && !d.LimitReached(key) },
		expire: func(timed func(key string)) {
			time.Sleep(sweepAfter()) // until they have expired
			done := make(chan struct{})
			go func() {
				m.DeleteExpiredTokenBuckets()
				d.DeleteExpiredTokenBuckets()
				close(done)
			}()
			for key := newKey(0); ; {
				select {
				case <-done:
					return
				default:
					timed(key)
				}
			}
		},
	}
}

// BenchmarkFlood sends fifty million subjects that were never seen before
// through an engine with room for a million. It fails if one that was banned, or
// had used half of a quota, is forgotten for them. ns/op is one of these subjects.
func BenchmarkFlood(b *testing.B) {
	long(b)
	const (
		fresh = 50_000_000
		bound = 1_000_000
		kept  = 1000 // of each kind
	)
	for b.Loop() {
		ctx := context.Background()
		// The engine's time passes with the flood, a microsecond a subject, so that
		// no window and no ban ends meanwhile, however slow the machine is.
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		l := newMemory(memory.Options{MaxSubjects: bound, Now: func() time.Time { return now }})
		penalty := ratelimit.DefaultPenalty()
		penalty.Grace = 0
		p := ratelimit.MustPlan("free", penalty, ratelimit.PerMinute(60), ratelimit.PerDay(1000))
		take := func(subject string, cost int64) ratelimit.Decision {
			return testcheck.Must(l.Take(ctx, subject, p, cost))
		}

		for i := range kept {
			number := newKey(uint64(i))
			testcheck.NoError(b, l.Ban(ctx, "banned by hand "+number, time.Hour, ""))
			take("struck "+number, 60)
			for d := take("struck "+number, 1); d.Outcome != ratelimit.Banned; {
				d = take("struck "+number, 1)
			}
			take("half of the minute "+number, 30)
			take("limited "+number, 60)
			take("limited "+number, 1)
		}

		var w stopwatch
		refused, k, began := 0, newKeyMaker(), time.Now()
		one := func(key string) bool {
			_, err := l.Take(ctx, key, p, 1)
			return err == nil
		}
		for i := range uint64(fresh) {
			now = now.Add(time.Microsecond)
			if !w.time(one, k.key(i)) {
				refused++
			}
		}
		took := time.Since(began)

		for _, c := range []struct {
			name      string
			outcome   ratelimit.Outcome
			remaining int64 // in the minute
		}{
			{"banned by hand ", ratelimit.Banned, 60},
			{"struck ", ratelimit.Banned, 0},
			{"half of the minute ", ratelimit.Allowed, 30},
			{"limited ", ratelimit.Limited, 0},
		} {
			forgotten := 0
			for i := range kept {
				d := testcheck.Must(l.Peek(ctx, c.name+newKey(uint64(i)), p))
				if d.Outcome != c.outcome || d.States[0].Remaining != c.remaining {
					forgotten++
				}
			}
			if forgotten > 0 {
				b.Errorf("%d of %d subjects of the kind %q were forgotten, want none", forgotten, kept, c.name)
			}
		}
		s := l.Stats()
		if s.Subjects > s.Bound {
			b.Errorf("%d subjects are held, want %d at most", s.Subjects, s.Bound)
		}
		b.ReportMetric(float64(took.Nanoseconds())/fresh, "ns/op")
		b.ReportMetric(float64(s.Evicted), "evicted")
		b.ReportMetric(float64(refused), "refused")
		w.report(b, "flood")
	}
}
