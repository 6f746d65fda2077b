package redislimit_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

var must = testcheck.NoError

var ctx = context.Background()

func TestMain(m *testing.M) {
	logging.Disable() // the client's, of servers that a test has killed
	os.Exit(m.Run())
}

// newLimiter returns an engine with subjects of its own.
func newLimiter(t testing.TB, client redis.UniversalClient) *redislimit.Limiter {
	t.Helper()
	l, err := redislimit.New(client, redislimit.Options{Prefix: "test" + strconv.FormatInt(prefixes.Add(1), 10)})
	must(t, err)
	return l
}

var prefixes atomic.Int64

// mini returns a miniredis and a client of it.
func mini(t testing.TB) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	m := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	return m, c
}

// A pair is an engine and the model, with one clock.
type pair struct {
	testing.TB
	start  time.Time
	server *miniredis.Miniredis
	clock  *ratelimittest.Clock
	engine *redislimit.Limiter
	model  enginetest.Model
}

func newPair(t testing.TB, start time.Time) *pair {
	t.Helper()
	m, c := mini(t)
	clock := ratelimittest.NewClock(start)
	p := &pair{t, start, m, clock, newLimiter(t, c), enginetest.NewModel(clock.Now)}
	p.set(0)
	return p
}

// set sets the clock to a time after the start.
func (p *pair) set(after time.Duration) {
	p.server.SetTime(p.start.Add(after))
	p.clock.Set(p.start.Add(after))
}

// agree fails the test unless both do the same.
func (p *pair) agree(what string, do func(enginetest.Model) (any, error)) {
	p.Helper()
	want, err := do(p.model)
	must(p, err)
	got, err := do(p.engine)
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
		p.Fatalf("%s, %v after the start: the engine (+) and the model (-) differ:\n%s", what, p.clock.Now().Sub(p.start), diff)
	}
}

// takeAll has both make charges.
func (p *pair) takeAll(charges ...ratelimit.Charge) {
	p.Helper()
	p.agree(charges[0].Subject, func(l enginetest.Model) (any, error) {
		decisions := make([]ratelimit.Decision, len(charges))
		return decisions, l.TakeAll(ctx, charges, decisions)
	})
}

// take has both make a charge of one unit.
func (p *pair) take(subject string, plan *ratelimit.Plan) {
	p.Helper()
	p.agree(subject, func(l enginetest.Model) (any, error) { return l.Take(ctx, subject, plan, 1) })
}

// lasting is a plan whose window will not end during a test.
func lasting(limit int64) *ratelimit.Plan {
	return ratelimit.MustPlan("lasting", ratelimit.Penalty{}, ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength})
}

// used returns what the subject has used under the plan lasting(limit).
func used(t testing.TB, l *redislimit.Limiter, subject string, limit int64) int64 {
	t.Helper()
	d, err := l.Peek(ctx, subject, lasting(limit))
	must(t, err)
	return limit - d.States[0].Remaining
}

// A scriptClock is a hook that has a real server read its time from a clock. It
// appends the time to the arguments of the script, and sends a script that takes
// it from there. By this clock keys expire too, when the script names them again: a sorted
// set beside them says when. They live so long that histories do not step back behind their end.
type scriptClock struct {
	*ratelimittest.Clock
	script, digest string
}

const clockScript = `
local clock = {ARGV[#ARGV - 1], ARGV[#ARGV]} table.remove(ARGV) table.remove(ARGV)
local function expiries(key) return string.match(key, '{.-}') .. 'expiries' end
for _, key in ipairs(KEYS) do
  local at = redis.call('ZSCORE', expiries(key), key)
  if at and at + 0 <= clock[1] + 0 then redis.call('DEL', key) redis.call('ZREM', expiries(key), key) end
end
local function by_clock(call)
  return function(command, key, ...)
    local args, at, is_new = {...}, nil, false
    if command == 'EXPIREAT' then return call('ZADD', expiries(key), args[2] or 'CH', args[1], key) end
    for i = 1, #args do
      is_new = is_new or args[i] == 'NX'
      if args[i] == 'EXAT' then at, args[i] = table.remove(args, i + 1), 'KEEPTTL' end
    end
    local reply = call(command, key, unpack(args))
    if at and (reply or not is_new) then redis.call('ZADD', expiries(key), at, key) end
    return reply
  end
end
`

const afterlife = 13 // seconds

func newScriptClock(t testing.TB, start time.Time) *scriptClock {
	t.Helper()
	script := clockScript + redislimit.Script
	for old, replacement := range map[string]string{
		"call('TIME')":        "clock",
		"sub = redis.call,":   "sub = by_clock(redis.call),",
		"redis.pcall('SET'":   "by_clock(redis.pcall)('SET'",
		"local AFTERLIFE = 5": fmt.Sprint("local AFTERLIFE = ", afterlife),
	} {
		if strings.Count(script, old) != 1 {
			t.Fatalf("the script has %q %d times, want once", old, strings.Count(script, old))
		}
		script = strings.Replace(script, old, replacement, 1)
	}
	return &scriptClock{ratelimittest.NewClock(start), script, redis.NewScript(script).Hash()}
}

func (c *scriptClock) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *scriptClock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		other := c.rewrite(ctx, cmd)
		err := next(ctx, other)
		answer(cmd, other)
		return err
	}
}

func (c *scriptClock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		others := make([]redis.Cmder, len(cmds))
		for i, cmd := range cmds {
			others[i] = c.rewrite(ctx, cmd)
		}
		err := next(ctx, others)
		for i, cmd := range cmds {
			answer(cmd, others[i])
		}
		return err
	}
}

func (c *scriptClock) rewrite(ctx context.Context, cmd redis.Cmder) redis.Cmder {
	args := slices.Clone(cmd.Args())
	if args[0] != "evalsha" && args[0] != "eval" {
		return cmd
	}
	args[1] = c.digest
	if args[0] == "eval" {
		args[1] = c.script
	}
	now := c.Now()
	return redis.NewStringCmd(ctx, append(args, now.Unix(), now.Nanosecond()/1000)...)
}

func answer(cmd, other redis.Cmder) {
	if other, rewritten := other.(*redis.StringCmd); rewritten {
		cmd.(interface{ SetVal(string) }).SetVal(other.Val())
		cmd.SetErr(other.Err())
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// newLimiterOf returns an engine with the subjects of another one.
func newLimiterOf(t testing.TB, client redis.UniversalClient, other *redislimit.Limiter) *redislimit.Limiter {
	t.Helper()
	l, err := redislimit.New(client, redislimit.Options{Prefix: redislimit.Prefix(other)})
	must(t, err)
	return l
}

// addUsage adds units to the windows of a plan that a time lies in, each with an id of its
// own, if there is one.
func addUsage(l engine.Adjuster, id, subject string, plan *ratelimit.Plan, units [4]int64, at time.Time) error {
	for i := range engine.Of(plan).Len() {
		d := engine.Uncounted(plan, 0, at)
		for k := range engine.Of(plan).Len() {
			if k != i {
				d.States[k].Reset = 0
			}
		}
		window := id
		if id != "" {
			window += fmt.Sprint(" ", i)
		}
		if err := l.Adjust(ctx, subject, &d, units[i], window); err != nil {
			return err
		}
	}
	return nil
}
