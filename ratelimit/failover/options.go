package failover

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Options are optional settings of a [Limiter]. The zero value works.
type Options struct {
	// Local is an embedded engine that decides, under the same plans, while the primary does not.
	// Nil: Take then returns an error that wraps [ratelimit.ErrUnavailable]. It is an
	// [engine.Peeker] and an [engine.Adjuster], as the primary must be, and nothing else decides
	// with it. To keep what it knows across restarts, save and load it; see package memory.
	//
	// Each process decides alone. If it has seen the primary deny a subject, or the subject use
	// half of a quota there, the local engine knows the usage and the ban. Any other subject starts
	// from zero. So in one window, with what the primary admitted before, a process admits less
	// than one and a half limits, and N processes less than N and a half. That bound holds for a
	// subject whose plan does not change. Windows of another plan begin at zero here, and what is
	// admitted here is not merged into windows that only the primary has open. What another process
	// gives back, resets, unbans, or bans for a shorter time, the local engine does not learn.
	//
	// What the local engine admits is charged to the primary when it is back, in the fixed and
	// calendar windows that were charged here and have not ended. That happens in the
	// background, or before the next request of the subject. Adjustments made meanwhile are
	// charged in the same way. A smooth quota is not merged: it fills up within its Window, and
	// until then a subject can use its burst here and there. If the primary refuses the charges
	// of one subject, that subject alone waits, and is decided here. Strikes and bans of the
	// local engine are not merged. If the process ends first, its journal is lost. A primary
	// that loses data decides with what it has: docs/FAULTS.md says what a Redis must keep.
	//
	// The clocks of this machine and of the primary should agree to within a small part of the
	// shortest window. Usage is not charged where its window has ended by the other clock, and
	// is charged early where its window has not begun.
	Local ratelimit.Limiter

	// Budget is how long a decision waits for the primary, 1ms to 1m; 0 means 50ms.
	Budget time.Duration

	// ConsecutiveFailures is how many failures in a row open the circuit, 1 to 64; 0 means 10.
	// Failures that overlap in time count as one. 32 failures among the last 64 calls open it too.
	ConsecutiveFailures int

	// Backoff is how long after the circuit opened the primary is probed, 1ms to 1h; 0 means 100ms.
	// The wait doubles with each probe that fails, up to fifty times Backoff, and an hour at most.
	// Each wait is shortened at random by up to half, so that servers that lost the primary
	// together do not return together. The first probe waits for a merge that began before, up to
	// two seconds, or two budgets. A probe takes at most one unit for each of the subjects
	// "failover:probe:0" to "failover:probe:15", under the quotas of the call that failed last. One
	// decision closes the circuit, which is for an outage of all servers of the primary.
	Backoff time.Duration

	// JournalSize is the largest number of subjects whose usage waits to be merged, 1
	// to 1<<24; 0 means 1<<20. It should be at least the largest number of subjects of Local.
	// A subject with two windows takes about 300 bytes and the name. When the journal is full,
	// requests are admitted that the primary will not count, see [Stats], and whose refund takes
	// units of others; adjustments are refused.
	JournalSize int

	// OnChange is called with the failure that opened the circuit, with the failure of each
	// probe, and with nil once the primary answers again and the circuit is closed. The calls
	// come in order, from a goroutine of the Limiter, which neither probes nor merges until
	// OnChange returns. The first may come as late as the first probe, see Backoff. OnChange
	// must not call Close. Nil: the begin and the end of an outage are logged to
	// [slog.Default]. Failures that do not open the circuit are counted in [Stats] alone.
	OnChange func(failure error)
}

// logged returns OnChange by default. A service with a wrong password for its store would
// otherwise never learn that it limits alone, or not at all.
func logged() func(error) {
	failing := false
	return func(failure error) {
		switch {
		case failure == nil:
			slog.Info("failover: the primary answers again")
		case !failing:
			slog.Warn("failover: the primary fails", "error", failure)
		}
		failing = failure != nil
	}
}

// complete sets the defaults. An error names the setting that is out of range.
func (o *Options) complete() error {
	return cmp.Or(
		complete("Backoff", &o.Backoff, 100*time.Millisecond, time.Millisecond, time.Hour),
		complete("Budget", &o.Budget, 50*time.Millisecond, time.Millisecond, time.Minute),
		complete("ConsecutiveFailures", &o.ConsecutiveFailures, 10, 1, outcomes),
		complete("JournalSize", &o.JournalSize, 1<<20, 1, 1<<24),
	)
}

func complete[T cmp.Ordered](name string, value *T, standard, low, high T) error {
	*value = cmp.Or(*value, standard)
	if *value < low || *value > high {
		return fmt.Errorf("failover: Options.%s must be from %v to %v, got %v", name, low, high, *value)
	}
	return nil
}

// A localEngine is what Options.Local must be.
type localEngine interface {
	ratelimit.Limiter
	engine.Peeker
	engine.Adjuster
}

// engines returns the primary and Options.Local as what each must be, or nils without Local.
func (o *Options) engines(primary ratelimit.Limiter) (engine.Adjuster, localEngine, error) {
	if o.Local == nil {
		return nil, nil, nil
	}
	if nilvalue.InEngine(o.Local) {
		return nil, nil, fmt.Errorf("failover: Options.Local must be an engine or nil, got a nil or zero %T", o.Local)
	}
	if reflect.ValueOf(primary).Comparable() && primary == o.Local {
		return nil, nil, errors.New("failover: Options.Local must be another engine than the primary, got the same one")
	}
	adjuster, ok := primary.(engine.Adjuster)
	if !ok {
		return nil, nil, fmt.Errorf("failover: with Options.Local the primary must be an engine.Adjuster, got a %T", primary)
	}
	local, ok := o.Local.(localEngine)
	if !ok {
		return nil, nil, fmt.Errorf("failover: Options.Local must be an engine.Peeker and an engine.Adjuster, got a %T", o.Local)
	}
	return adjuster, local, nil
}
