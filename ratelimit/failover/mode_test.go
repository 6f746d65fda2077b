package failover_test

import (
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/failover"
)

func TestModeText(t *testing.T) {
	for _, mode := range []failover.Mode{failover.FailLocal, failover.FailOpen, failover.FailClosed} {
		text, err := mode.MarshalText()
		if err != nil || string(text) != mode.String() {
			t.Errorf("%v: MarshalText gave %q, %v", mode, text, err)
		}
		var back failover.Mode
		if err := back.UnmarshalText(text); err != nil || back != mode {
			t.Errorf("%q was read as %v, %v", text, back, err)
		}
	}
	for _, text := range []string{"", "Local", "closed ", "Mode(0)", "fail-open"} {
		mode := failover.FailClosed
		if err := mode.UnmarshalText([]byte(text)); err == nil || mode != failover.FailClosed {
			t.Errorf("%q was read as %v, %v, want an error", text, mode, err)
		}
	}
	if text, err := failover.Mode(0).MarshalText(); err == nil {
		t.Errorf("the zero mode was written as %q, want an error", text)
	}
}
