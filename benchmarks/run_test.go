package benchmarks

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// long skips a benchmark that takes its time.
func long(b *testing.B) {
	b.Helper()
	if os.Getenv("GATEHOUSE_LONG") != "1" {
		skip(b, "takes long; GATEHOUSE_LONG=1 runs it")
	}
}

// skip skips a benchmark and prints why, which testing does for tests alone.
func skip(b *testing.B, why string) {
	b.Helper()
	fmt.Printf("--- SKIP: %s\n    %s\n", b.Name(), why)
	b.SkipNow()
}

// trial reports whether the benchmarks run once, to see that they do. Then keys
// are a twentieth of what the names say.
func trial() bool { return flag.Lookup("test.benchtime").Value.String() == "1x" }

// scaled returns the number of keys to be used in place of n.
func scaled[T int | time.Duration](n T) T {
	if trial() && n > 1 {
		return n / 20
	}
	return n
}

// rest leaves the processor to others for a moment, before the clock starts.
// Linux takes it away from a real-time process (chrt -f) for 50 ms when that has
// left less than 5 % of a second to others, which is longer than anything that is
// measured here.
func rest() {
	if !trial() {
		time.Sleep(60 * time.Millisecond)
	}
}

const (
	keyPrefix = "owner-of-a-key-whose-name-is-"
	keySize   = 45
)

// A keyMaker makes keys in place.
type keyMaker [keySize]byte

func newKeyMaker() *keyMaker {
	k := new(keyMaker)
	copy(k[:], keyPrefix)
	return k
}

// key returns the i-th key, which is good until the next call. No engine keeps
// it: each has met the key before, and has a copy or only a hash of it.
func (k *keyMaker) key(i uint64) string {
	i *= 0x9e3779b97f4a7c15 // odd, so that no two keys are the same
	for at := keySize - 1; at >= len(keyPrefix); at-- {
		k[at] = "0123456789abcdef"[i&15]
		i >>= 4
	}
	return unsafe.String(&k[0], len(k))
}

// newKey returns the i-th key, to be kept.
func newKey(i uint64) string { return strings.Clone(newKeyMaker().key(i)) }

func newKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = newKey(uint64(i))
	}
	return keys
}

// An order is a sequence of pseudo-random numbers, the same for each engine.
type order uint64

// next returns a number below n, which is less than 1<<32.
func (o *order) next(n uint64) uint64 {
	*o = *o*6364136223846793005 + 1442695040888963407
	return uint64(*o>>32) * n >> 32
}

// A visitor makes requests of one handler and notes what becomes of them.
type visitor struct {
	handler http.Handler
	address string
	key     string
}

func (v visitor) get() *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/v1/pets", nil)
	if v.address != "" {
		r.RemoteAddr = v.address
	}
	if v.key != "" {
		r.Header.Set(keyField, v.key)
	}
	w := httptest.NewRecorder()
	v.handler.ServeHTTP(w, r)
	return w.Result()
}

// admitted returns how many of n requests are.
func (v visitor) admitted(n int) (admitted int) {
	for range n {
		if v.get().StatusCode == http.StatusOK {
			admitted++
		}
	}
	return admitted
}

// A limited is a window and how often it may be used.
type limited struct {
	limit  int
	window time.Duration
}

// guard puts a peer's middlewares, one for each quota, the first outermost, or
// one of this module with all quotas, in front of a handler.
func guard(tb testing.TB, peer string, quotas ...limited) visitor {
	quota := map[string]quotaMiddleware{
		"sethvargo": sethvargoMiddleware,
		"throttled": throttledMiddleware,
		"httprate":  httprateMiddleware,
		"ulule":     ululeMiddleware,
		"tollbooth": tollboothMiddleware,
	}[peer]
	h := http.Handler(ok)
	if quota != nil {
		for i := len(quotas) - 1; i >= 0; i-- {
			h = quota(tb, quotas[i].limit, quotas[i].window)(h)
		}
		return visitor{handler: h, key: newKey(0)}
	}
	var all []ratelimit.Quota
	for _, q := range quotas {
		all = append(all, ratelimit.Quota{Limit: int64(q.limit), Window: q.window})
	}
	p := ratelimit.MustPlan("plan", ratelimit.Penalty{}, all...)
	limit := newLimit(newMemory(memory.Options{}), func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: keyOf(r), Plan: p}, nil
	})
	return visitor{handler: limit(h), key: newKey(0)}
}
