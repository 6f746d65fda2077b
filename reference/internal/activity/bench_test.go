package activity_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/activity"
)

func BenchmarkCount(b *testing.B) {
	for _, bb := range []struct {
		name     string
		subjects int
	}{{"one owner", 1}, {"100 owners", 100}, {"100000 owners", 100_000}} {
		names := make([]string, bb.subjects)
		for i := range names {
			names[i] = fmt.Sprintf("owner:%d", i)
		}
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			c := activity.New(time.Now)
			for i := range b.N {
				c.Count(names[i%len(names)], owner, ratelimit.Allowed)
			}
		})
		b.Run(bb.name+"/parallel", func(b *testing.B) {
			c := activity.New(time.Now)
			var start atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for i := int(start.Add(997)); pb.Next(); i++ {
					c.Count(names[i%len(names)], owner, ratelimit.Allowed)
				}
			})
		})
	}
}

// BenchmarkSnapshot is for a Counter without a free place.
func BenchmarkSnapshot(b *testing.B) {
	now := time.Now()
	c := activity.New(func() time.Time { return now })
	for s := range activity.Seconds {
		for i := range 1000 {
			c.Count(fmt.Sprint("owner:", s, i), owner, ratelimit.Allowed)
			c.Count(fmt.Sprint("network:", s, i), network, ratelimit.Allowed)
		}
		now = now.Add(time.Second)
	}
	for b.Loop() {
		c.Snapshot(20)
	}
}
