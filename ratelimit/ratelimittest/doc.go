// Package ratelimittest holds what every rate limiting engine promises, as
// tests that an engine written anywhere can run:
//
//	func TestConformance(t *testing.T) {
//		ratelimittest.Run(t, func(t *testing.T, start time.Time) ratelimittest.Engine {
//			clock := ratelimittest.NewClock(start)
//			limiter, err := memory.New(memory.Options{Now: clock.Now})
//			if err != nil {
//				t.Fatal(err)
//			}
//			return ratelimittest.Engine{Limiter: limiter, Set: clock.Set}
//		}, ratelimittest.Gaps{})
//	}
//
// An engine says in [Gaps] what it cannot do; everything else is held against
// it. The capabilities beside Take (peeking, refunds, bans) are tested where the
// engine has them. [Histories] compares an engine, decision by decision, with
// [Model], a limiter that is slow and obviously right.
package ratelimittest
