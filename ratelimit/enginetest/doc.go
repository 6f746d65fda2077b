// Package enginetest tests what every rate limiting engine promises. An engine
// written anywhere can run it:
//
//	func TestConformance(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
//			clock := ratelimittest.NewClock(start)
//			limiter, err := memory.New(memory.Options{Now: clock.Now})
//			if err != nil {
//				t.Fatal(err)
//			}
//			return enginetest.Engine{Limiter: limiter, Set: clock.Set}
//		}, enginetest.Gaps{})
//	}
//
// [Gaps] declares what an engine cannot do. The capabilities beside Take (peeking,
// refunds, bans) are tested if the engine has them.
//
// [Histories] compares an engine, decision by decision, with [Model], a limiter that is slow
// and obviously right. They are what tests windows, smooth quotas, strikes, refunds and leases.
// Run makes them for an engine with no other gaps than NoCalendars, NoSmooth, InOrder and
// Forgets. The tests with names are about what they do not reach: wrong calls, concurrent
// callers, clocks that step back by days, and bounds on what a client meets.
package enginetest
