package failover_test

import (
	"context"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A scripted primary gives its answers one after the other, and then is gone.
type scripted struct {
	*shared
	answers []ratelimit.Decision
}

func (s *scripted) Take(context.Context, string, *ratelimit.Plan, int64) (d ratelimit.Decision, err error) {
	if len(s.answers) == 0 {
		return d, errDown
	}
	d, s.answers = s.answers[0], s.answers[1:]
	return d, nil
}

func (s *scripted) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	return s.Take(ctx, subject, plan, 1)
}

// An answer is what a primary says: that under plan so much of each quota was used
// at a time, counted from the test's beginning.
type answer struct {
	at     time.Duration
	plan   *ratelimit.Plan
	used   []int64
	banned time.Duration // from at; 0: it is not
}

func (a answer) decision(began time.Time) ratelimit.Decision {
	at := began.Add(a.at)
	d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: a.plan, Cost: 1, Time: at.UnixNano(), StrikesLeft: -1}
	for i, n := range a.used {
		q := engine.Of(a.plan).Quota(i)
		d.States[i] = ratelimit.State{Remaining: q.Limit - n, Reset: at.Truncate(q.Window).Add(q.Window).Unix()}
	}
	if a.banned > 0 {
		d.Outcome, d.BanEnds = ratelimit.Banned, at.Add(a.banned).Unix()
	}
	engine.Complete(&d)
	return d
}

// Answers that come out of order leave the most that the primary said of a window: an
// answer that says less may have been overtaken.
func TestMirrorOfAnswersOutOfOrder(t *testing.T) {
	const ms = time.Millisecond
	smaller := ratelimit.MustPlan("smaller", ratelimit.Penalty{}, ratelimit.PerDay(700))
	ten := ratelimit.MustPlan("ten", ratelimit.Penalty{}, ratelimit.PerMinute(5), ratelimit.PerDay(10))
	for _, test := range []struct {
		name    string
		answers []answer
		plan    *ratelimit.Plan
		after   time.Duration // when a request comes that the primary does not decide
		used    string
		banned  bool
	}{
		{"they are in order", []answer{
			{at: 1 * ms, plan: daily, used: []int64{600}},
			{at: 2 * ms, plan: daily, used: []int64{601}},
		}, daily, 0, "601/24h0m0s", false},
		{"the one before was overtaken", []answer{
			{at: 2 * ms, plan: daily, used: []int64{601}},
			{at: 1 * ms, plan: daily, used: []int64{600}},
		}, daily, 0, "601/24h0m0s", false},
		{"the one that was overtaken is of less than half", []answer{
			{at: 2 * ms, plan: daily, used: []int64{500}},
			{at: 1 * ms, plan: daily, used: []int64{499}},
		}, daily, 0, "500/24h0m0s", false},
		{"much later less is used: another process gave it back", []answer{
			{at: 0, plan: daily, used: []int64{900}},
			{at: time.Second, plan: daily, used: []int64{600}},
		}, daily, 0, "900/24h0m0s", false},
		{"the ban overtook the request before it", []answer{
			{at: 2 * ms, plan: daily, used: []int64{600}, banned: time.Hour},
			{at: 1 * ms, plan: daily, used: []int64{600}},
		}, daily, 0, "600/24h0m0s", true},
		{"a longer ban overtook a shorter one", []answer{
			{at: 2 * ms, plan: daily, used: []int64{600}, banned: time.Hour},
			{at: 1 * ms, plan: daily, used: []int64{600}, banned: time.Minute},
		}, daily, 2 * time.Minute, "600/24h0m0s", true},
		{"a longer ban follows a shorter one", []answer{
			{at: 1 * ms, plan: daily, used: []int64{600}, banned: time.Minute},
			{at: 2 * ms, plan: daily, used: []int64{600}, banned: time.Hour},
		}, daily, 2 * time.Minute, "600/24h0m0s", true},
		{"a minute has ended in between", []answer{
			{at: 0, plan: ten, used: []int64{5, 5}},
			{at: 30*time.Second + ms, plan: ten, used: []int64{1, 6}},
		}, ten, 31 * time.Second, "0/1m0s 6/24h0m0s", false},
		{"the limit was lowered", []answer{
			{at: 1 * ms, plan: daily, used: []int64{600}},
			{at: 2 * ms, plan: smaller, used: []int64{601}},
		}, daily, 0, "601/24h0m0s", false},
		{"the limit was raised", []answer{
			{at: 1 * ms, plan: smaller, used: []int64{600}},
			{at: 2 * ms, plan: daily, used: []int64{601}},
		}, daily, 0, "601/24h0m0s", false},
		{"the plan has other windows", []answer{
			{at: 1 * ms, plan: daily, used: []int64{600}},
			{at: 2 * ms, plan: ten, used: []int64{4, 10}},
		}, daily, 0, "600/24h0m0s", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, withLocal, failover.Options{}, func(r *rig) {
				primary := &scripted{shared: r.shared}
				for _, a := range test.answers {
					primary.answers = append(primary.answers, a.decision(time.Now()))
				}
				r.use(primary, failover.Options{Local: r.local})
				for _, a := range test.answers {
					r.take("a", a.plan)
				}
				time.Sleep(test.after)
				d, err := r.Peek(ctx, "a", test.plan)
				must(t, err)
				r.wantUsed("the local engine begins with this", r.local, "a", test.plan, test.used)
				if banned := d.Outcome == ratelimit.Banned; banned != test.banned {
					t.Errorf("got %v, want a ban: %v", d.Outcome, test.banned)
				}
			})
		})
	}
}
