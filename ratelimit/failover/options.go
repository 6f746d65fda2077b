package failover

import (
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Options of a [Limiter]. The zero value works with the modes [FailOpen] and
// [FailClosed].
type Options struct {
	// Local is the engine of mode [FailLocal], which needs it; the other modes
	// ignore it. It is an embedded one: it answers at once. It belongs to this
	// Limiter, and nothing else uses it.
	Local ratelimit.Limiter

	// Budget is how long a decision waits for the primary, 1ms to 1m; 0 means
	// 50ms. It covers everything: a caller never waits longer.
	Budget time.Duration

	// Row is how many failures in a row open the circuit, 1 to 64; 0 means 10.
	// Failures that overlap in time count as one.
	Row int

	// Share is how many failures among the last 64 calls open the circuit, 1 to
	// 64; 0 means 32. Until there have been 64, those that are missing count as
	// successes.
	Share int

	// FirstProbe is how long after the circuit opened the primary is probed,
	// 1ms to 1h; 0 means 100ms. The wait doubles with each probe that fails, to
	// at most LastProbe, FirstProbe to 1h; 0 means 5s, or FirstProbe if that is
	// longer. From each wait up to half is taken at random, so that servers that
	// lost the primary together do not return together.
	FirstProbe, LastProbe time.Duration

	// Calls is how many calls of the primary are under way at most, 1 to 1<<20;
	// 0 means 1024. Each has a goroutine. If all are in use, a request
	// waits for one, as part of the budget. A call that never returns uses one for
	// good.
	Calls int

	// Journal is how many subjects' usage mode [FailLocal] keeps at most until it can
	// be merged, 1 to 1<<24, rounded up to a multiple of 32; 0 means 1<<16. One
	// takes about 200 bytes and its name.
	Journal int

	// Shadow is for how many subjects mode [FailLocal] remembers what the primary
	// last said, so that a quota that is exhausted there is exhausted here; at most
	// 1<<24, rounded up to a multiple of 32; 0 means 1<<14; negative: none. One
	// takes about 210 bytes. Only subjects that have used half of a quota, or were
	// denied, are remembered.
	Shadow int

	// OnChange is called after each change of the circuit, in order, from a
	// goroutine of the Limiter, which probes and merges no further until it
	// returns. It must not call Close. It may be nil.
	//
	// During an outage the circuit changes twice with each probe, to half-open and
	// back to open. A service that wants to know of the outage alone, for a log or an
	// alert, takes the changes from or to CircuitClosed.
	OnChange func(Change)
}

// A Change is one of the circuit.
type Change struct {
	From, To Circuit
	Time     time.Time
	Cause    error // of an opening: the failure that was one too many
}

func (o *Options) validate(mode Mode) error {
	bad := func(field string, value, low, high any) error {
		return fmt.Errorf("failover: Options.%s: %v is not from %v to %v", field, value, low, high)
	}
	switch {
	case mode == FailLocal && o.Local == nil:
		return fmt.Errorf("failover: Options.Local: mode %v needs an engine", mode)
	case o.Budget < time.Millisecond || o.Budget > time.Minute:
		return bad("Budget", o.Budget, time.Millisecond, time.Minute)
	case o.Row < 1 || o.Row > outcomes:
		return bad("Row", o.Row, 1, outcomes)
	case o.Share < 1 || o.Share > outcomes:
		return bad("Share", o.Share, 1, outcomes)
	case o.FirstProbe < time.Millisecond || o.FirstProbe > time.Hour:
		return bad("FirstProbe", o.FirstProbe, time.Millisecond, time.Hour)
	case o.LastProbe < o.FirstProbe || o.LastProbe > time.Hour:
		return bad("LastProbe", o.LastProbe, o.FirstProbe, time.Hour)
	case o.Calls < 1 || o.Calls > 1<<20:
		return bad("Calls", o.Calls, 1, 1<<20)
	case o.Journal < 1 || o.Journal > 1<<24:
		return bad("Journal", o.Journal, 1, 1<<24)
	case o.Shadow > 1<<24:
		return bad("Shadow", o.Shadow, 0, 1<<24)
	}
	return nil
}

func (o *Options) setDefaults() {
	setDefault(&o.Budget, 50*time.Millisecond)
	setDefault(&o.Row, 10)
	setDefault(&o.Share, outcomes/2)
	setDefault(&o.FirstProbe, 100*time.Millisecond)
	setDefault(&o.LastProbe, max(5*time.Second, o.FirstProbe))
	setDefault(&o.Calls, 1024)
	setDefault(&o.Journal, 1<<16)
	setDefault(&o.Shadow, 1<<14)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
