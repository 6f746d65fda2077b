package logging

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMinutely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Minutely
		want := func(when string, wantDropped int, wantOK bool) {
			t.Helper()
			if dropped, ok := m.Pass(); dropped != wantDropped || ok != wantOK {
				t.Errorf("%s: Pass = %d, %t, want %d, %t", when, dropped, ok, wantDropped, wantOK)
			}
		}
		want("the first message", 0, true)
		want("one at once", 0, false)
		time.Sleep(time.Minute - time.Nanosecond)
		want("one just before a minute", 0, false)
		time.Sleep(time.Nanosecond)
		want("one after a minute", 2, true)
		time.Sleep(time.Hour)
		want("one after an hour without any", 0, true)
	})
}
