package apikey_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

// BenchmarkMemory reports what a remembered valid key costs, owner and record
// included.
func BenchmarkMemory(b *testing.B) {
	const keys = 30_000
	store := newStore()
	var issued []string
	for range keys {
		issued = append(issued, store.issue())
	}
	for b.Loop() {
		v := newVerifier(store, apikey.Options{})
		v.Shrink(2*keys, 32)
		before := heap()
		for _, key := range issued {
			v.Verify(context.Background(), key)
		}
		b.ReportMetric(float64(heap()-before)/keys, "bytes/key")
		runtime.KeepAlive(v)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestHitsDoNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that nothing grows old
		store := newStore()
		v := newVerifier(store, apikey.Options{})
		key := store.issue()
		unknown := newFormat("pet_live_").Generate().Reveal()
		for name, k := range map[string]string{"valid": key, "unknown": unknown, "malformed": damaged(key)} {
			v.Verify(t.Context(), k)
			if got := testing.AllocsPerRun(100, func() { v.Verify(context.Background(), k) }); got != 0 {
				t.Errorf("verifying a remembered %s key allocates %v times, want none", name, got)
			}
		}
	})
}
