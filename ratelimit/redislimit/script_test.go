package redislimit_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// A step has a subject do something at a time after the start.
type step struct {
	at time.Duration
	do func(l enginetest.Model, now time.Time) (ratelimit.Decision, error)
}

func take(at time.Duration, plan *ratelimit.Plan) step {
	return step{at, func(l enginetest.Model, _ time.Time) (ratelimit.Decision, error) { return l.Take(ctx, "a", plan, 1) }}
}

// together is take in a group with another subject, which has room.
func together(at time.Duration, plan *ratelimit.Plan) step {
	return step{at, func(l enginetest.Model, _ time.Time) (ratelimit.Decision, error) {
		var decisions [2]ratelimit.Decision
		charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "b", Plan: lasting(1000), Cost: 1}}
		err := l.TakeAll(ctx, charges, decisions[:])
		return decisions[0], err
	}}
}

func peek(at time.Duration, plan *ratelimit.Plan) step {
	return step{at, func(l enginetest.Model, _ time.Time) (ratelimit.Decision, error) { return l.Peek(ctx, "a", plan) }}
}

// usageOf adds usage from another process, whose clock is ahead.
func usageOf(at time.Duration, plan *ratelimit.Plan, units int64, ahead time.Duration) step {
	return step{at, func(l enginetest.Model, now time.Time) (ratelimit.Decision, error) {
		return ratelimit.Decision{}, addUsage(l, "", "a", plan, [4]int64{units}, now.Add(ahead))
	}}
}

func ban(at time.Duration, subject string, length time.Duration) step {
	return step{at, func(l enginetest.Model, _ time.Time) (ratelimit.Decision, error) {
		return ratelimit.Decision{}, l.Ban(ctx, subject, length, "")
	}}
}

// At the second in which something ends, and where the clock has stepped back, the
// script decides as the model does.
func TestBoundariesAgreeWithModel(t *testing.T) {
	penalty := ratelimit.Penalty{
		Strikes: 10, Decay: time.Hour, Ban: time.Minute, Growth: 2, Max: time.Hour, Forgive: time.Hour,
	}
	patient := penalty
	patient.Grace = 6 * time.Second
	strict := ratelimit.Penalty{
		Strikes: 1, Decay: time.Hour, Ban: 10 * time.Second, Growth: 2, Max: time.Hour, Forgive: time.Minute,
	}
	quota := func(limit int64, window time.Duration) ratelimit.Quota {
		return ratelimit.Quota{Limit: limit, Window: window}
	}
	plan := ratelimit.MustPlan
	minute := plan("minute", penalty, quota(1, time.Minute))
	twoAMinute, tenAMinute := plan("two", penalty, quota(2, time.Minute)), plan("ten", penalty, quota(10, time.Minute))
	minuteAndHour := plan("minute and hour", patient, quota(100, time.Minute), quota(5, time.Hour))
	patientMinute := plan("patient minute", patient, quota(1, time.Minute))
	ten := plan("ten seconds", patient, quota(1, 10*time.Second))
	tenAndMinute := plan("ten seconds and minute", patient, quota(1, 10*time.Second), quota(1, time.Minute))
	strictTen := plan("strict", strict, quota(1, 10*time.Second))
	both := plan("minute and hour that end together", patient, quota(1, time.Minute), quota(2, time.Hour))
	localDay := plan("local day", patient, ratelimit.PerDay(1).In(time.UTC), ratelimit.PerMonth(100))
	smooth := plan("smooth", patient, quota(3, 11*time.Second).Smooth(1), quota(15, time.Minute).Smooth(1), quota(1000, time.Hour))
	twice := plan("twice the same", patient, quota(6, time.Minute).Smooth(1), quota(360, time.Hour).Smooth(1), quota(2, 2*time.Hour))
	decaying := plan("decaying", ratelimit.Penalty{
		Strikes: 20, Decay: 10 * time.Second, Ban: time.Minute, Growth: 2, Max: time.Hour, Forgive: time.Hour,
	}, ratelimit.PerDay(1))
	takes := func(plan *ratelimit.Plan, pauses ...time.Duration) (steps []step) {
		at := time.Duration(0)
		for _, pause := range pauses {
			at += pause * time.Second
			steps = append(steps, take(at, plan))
		}
		return steps
	}
	lenient := plan("lenient", ratelimit.Penalty{}, quota(1, time.Minute))
	lenientSmooth := plan("lenient and smooth", ratelimit.Penalty{}, quota(2, time.Minute).Smooth(1))
	patient.Strikes = 1
	strictDay := plan("strict local day", patient, ratelimit.PerDay(1).In(time.UTC), ratelimit.PerMonth(100))
	const sec, ms = time.Second, time.Millisecond
	for name, steps := range map[string][]step{
		"a ban that the clock has shortened, on a whole second, stays short": {
			ban(30*sec, "a", time.Minute), take(29*sec, minute), take(29*sec+500*ms, minute), take(31*sec, minute),
		},
		"so it does in a group": {
			ban(30*sec, "a", time.Minute), together(29*sec, minute), together(29*sec+500*ms, minute), together(31*sec, minute),
		},
		"strikes decay on the second, several at once, with the rest of a decay kept, and after the clock stepped back": takes(decaying,
			0, 0, 1, 1, 1, 1, 1, 25, 6, 9, 1, 1, 1, 1, 1, 10, 9, 1, -3, 9, 1, 1, -7, -1, 10, 20, 30, 100, 0, 0, 10, 0, 0, 0, 39, 1),
		"strikes end with the second in which their record expires": {
			take(50*sec, minute), take(55*sec, minute), take(56*sec, minute), peek(59*sec+999*ms, minute), peek(60*sec+250*ms, minute),
		},
		"a grace ends with the second in which its record expires": {
			take(10*sec, patientMinute), take(11*sec, patientMinute),
			take(20*sec, minuteAndHour), take(20*sec, minuteAndHour), take(20*sec, minuteAndHour), take(20*sec, minuteAndHour), take(20*sec, minuteAndHour),
			take(60*sec+250*ms, minuteAndHour),
		},
		"strikes end so if the usage of another process fills the next window": {
			take(10*sec, minute), take(11*sec, minute), take(12*sec, minute),
			usageOf(13*sec, minute, 1, 50*sec), take(60*sec+250*ms, minute),
		},
		"of a subject that is spared they end too, if the clock of another process opened the next window": {
			take(10*sec, twoAMinute), take(11*sec, twoAMinute), take(12*sec, twoAMinute), take(13*sec, twoAMinute),
			usageOf(13*sec, twoAMinute, 1, 48*sec), ban(13*sec, "b", time.Hour), together(60*sec+250*ms, tenAMinute),
		},
		"a record lasts as long as a window that a change of plan brought": {
			take(2*sec, ten), take(5*sec, ten), usageOf(6*sec, patientMinute, 1, 0), take(7*sec, tenAndMinute), take(12*sec, tenAndMinute),
		},
		"each day of a month has a grace of its own": {
			take(1*sec, localDay), take(2*sec, localDay), take(9*sec, localDay),
			take(24*time.Hour, localDay), take(24*time.Hour+sec, localDay), take(24*time.Hour+8*sec, localDay),
		},
		"so it has if a ban is due": {
			take(1*sec, strictDay), take(2*sec, strictDay), take(9*sec, strictDay),
			take(24*time.Hour, strictDay), take(24*time.Hour+sec, strictDay), take(24*time.Hour+8*sec, strictDay), take(24*time.Hour+9*sec, strictDay),
		},
		"of two smooth quotas that refuse until the same second, the later one says since when the grace counts": {
			take(0, smooth), take(1*sec, smooth), take(9*sec, smooth), take(13*sec+700*ms, smooth), take(14*sec, smooth),
		},
		"of two smooth quotas that refuse until the same instant, it is the first one, also if a fixed window refuses too": {
			take(4200*sec, twice), take(4201*sec, twice), take(7195*sec, twice), take(7196*sec, twice),
		},
		"of two windows that refuse until the same second, it is the shorter one": {
			take(3500*sec, both), take(3501*sec, both), take(3541*sec, both), take(3542*sec, both),
		},
		"so it is in a group": {
			together(3500*sec, both), together(3501*sec, both), together(3541*sec, both), together(3542*sec, both),
		},
		"a record that is over is dropped by a denial, also under a plan without a penalty": {
			take(sec, lenient), ban(2*sec, "a", 2*sec), take(5*sec, lenient), take(3*sec, lenient),
		},
		"also under a smooth quota": {
			take(sec, lenientSmooth), ban(2*sec, "a", 2*sec), take(5*sec, lenientSmooth), take(3*sec, lenientSmooth),
		},
		"a ban that is over keeps its end when the clock steps back": {
			take(1*sec, strictTen), take(2*sec, strictTen), take(3*sec, strictTen), // a ban until 13
			take(21*sec, strictTen), take(5*sec, strictTen), // back before its end
			take(70*sec, strictTen), take(71*sec, strictTen), take(72*sec, strictTen), // it is forgiven at 73
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
			for i, step := range steps {
				p.set(step.at)
				p.agree(fmt.Sprint("step ", i+1), func(l enginetest.Model) (any, error) { return step.do(l, p.clock.Now()) })
			}
		})
	}
}

func TestConformance(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err == nil {
		testenv.Long(t, "miniredis goes through the suite, as TestConformanceOfServer does")
	}
	enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
		m, c := mini(t)
		m.SetTime(start)
		return enginetest.Engine{Limiter: newLimiter(t, c), Set: m.SetTime, Remembers: true}
	}, enginetest.Gaps{})
}
