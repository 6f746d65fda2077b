package benchmarks

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

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
