//go:build unix

package ululelimit_test

import (
	"testing"
	"time"

	uluredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/animalstore/gatehouse/ratelimit/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestServer(t *testing.T) {
	client := redistest.Start(t).Client()
	ratelimittest.Run(t, func(t *testing.T, _ time.Time) ratelimittest.Engine {
		if err := client.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		store, err := uluredis.NewStore(client)
		if err != nil {
			t.Fatal(err)
		}
		return ratelimittest.Engine{Limiter: newEngine(t, store)}
	}, gaps)
}
