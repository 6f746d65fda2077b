package apikey_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

func BenchmarkVerify(b *testing.B) {
	store := newStore()
	v := newVerifier(store, apikey.Options{})
	format := newFormat("pet_live_")
	var keys []string
	for range 10_000 {
		keys = append(keys, store.issue())
	}
	hot, unknown := keys[0], format.Generate().Reveal()
	one := func(key string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Verify(context.Background(), key)
			}
		}
	}
	b.Run("hit", one(hot))
	b.Run("hit unknown", one(unknown))
	b.Run("wrong checksum", one(damaged(unknown)))
	b.Run("wrong length", one(unknown[:43]))
	b.Run("hit of 10000", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			v.Verify(context.Background(), keys[i%len(keys)])
		}
	})
	b.Run("hit parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				v.Verify(context.Background(), hot)
			}
		})
	})
	b.Run("miss", func(b *testing.B) {
		v := newVerifier(store, apikey.Options{TTL: 1})
		b.ReportAllocs()
		for b.Loop() {
			v.Verify(context.Background(), hot)
		}
	})
}

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
