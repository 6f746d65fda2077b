package failover_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A primary that panics in the background has failed. The process goes on.
func TestPanicInTheBackground(t *testing.T) {
	panics := func(context.Context) error { panic("nil map") }
	var cause error
	opts := failover.Options{OnChange: func(failure error) { cause = failure }}
	run(t, withLocal, opts, func(r *rig) {
		r.lose()
		r.shared.set(panics)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.wantOpen("probes panic", true)
		if cause == nil || !strings.Contains(cause.Error(), "nil map") {
			r.Errorf("the cause is %v, want one that tells the panic", cause)
		}
		r.regain()
	})
	run(t, withLocal, opts, func(r *rig) {
		r.shared.set(down)
		r.take("a", daily)
		r.shared.set(panics)
		time.Sleep(10 * time.Second)
		if err := r.Close(); err == nil {
			r.Error("Close, while charges panic: got no error, want one that says that a subject is not merged")
		}
		r.shared.set(nil)
		if err := r.Close(); err != nil {
			r.Error(err)
		}
		r.wantUsed("merged after the panics", r.shared.engine, "a", daily, "1/24h0m0s")
	})
}
