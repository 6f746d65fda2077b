package histories_test

import (
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/animalstore/gatehouse/ratelimit/internal/integration/histories"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis would log each connection that a test has cut
	os.Exit(m.Run())
}

func TestMiniredis(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	for seed := range uint64(4) {
		histories.Check(t, newRedisEngine(t, c), histories.Options{Seed: seed, Calls: 60})
	}
}

// newRedisEngine returns an engine with subjects of its own.
func newRedisEngine(t testing.TB, client redis.UniversalClient) *redislimit.Limiter {
	t.Helper()
	l, err := redislimit.New(client, redislimit.Options{Prefix: "test" + strconv.FormatInt(prefixes.Add(1), 10)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var prefixes atomic.Int64
