package main_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
)

// petsLoad adds pets until it is stopped, while the database fails and comes back.
type petsLoad struct {
	mu           sync.Mutex
	acknowledged map[int64]bool
	last         atomic.Int64 // pets that were acknowledged
	refused      atomic.Int64 // requests that were answered with 503
}

// run adds pets from several clients until ctx ends. Each answer must be 201, or a 503 in
// the envelope.
func (l *petsLoad) run(ctx context.Context, t *testing.T, p *process, key string) (wait func()) {
	const clients = 8
	l.acknowledged = map[int64]bool{}
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				a, err := ask(t.Context(), "POST", p.api+"/v1/pets", key, `{"name":"Rex","categoryId":1}`)
				switch {
				case err != nil:
					t.Errorf("a request under load: %v", err)
					return
				case a.status == 201:
					l.add(t, a)
				default:
					checkUnavailable(t, a)
					l.refused.Add(1)
				}
			}
		})
	}
	return wg.Wait
}

func (l *petsLoad) add(t *testing.T, a answer) {
	var pet struct{ ID int64 }
	if err := json.Unmarshal(a.body, &pet); err != nil {
		t.Errorf("%v in %s", err, a.body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acknowledged[pet.ID] {
		t.Errorf("two pets have the ID %d", pet.ID)
	}
	l.acknowledged[pet.ID] = true
	l.last.Add(1)
}

// check checks that each pet that was acknowledged is there.
func (l *petsLoad) check(t *testing.T, p *process, key string) {
	t.Helper()
	stored := petIDs(t, p, key)
	for id := range l.acknowledged {
		if !stored[id] {
			t.Errorf("pet %d was acknowledged and is not there", id)
		}
	}
	t.Logf("%d pets acknowledged, %d stored, %d requests refused", len(l.acknowledged), len(stored), l.refused.Load())
}

// more waits until more pets are acknowledged.
func (l *petsLoad) more(t *testing.T, when string) {
	t.Helper()
	before := l.last.Load()
	eventually(t, "pets are acknowledged "+when, func() bool { return l.last.Load() > before+50 })
}

// checkUnavailable checks the answer of a server whose database cannot be used.
func checkUnavailable(t *testing.T, a answer) {
	t.Helper()
	var envelope struct {
		Code   string
		Status int
	}
	if err := json.Unmarshal(a.body, &envelope); err != nil || a.status != 503 || envelope.Code != "unavailable" ||
		envelope.Status != 503 || a.header.Get("Retry-After") == "" || a.header.Get("X-RateLimit-Limit") == "" {
		t.Errorf("without the database the answer is %d, Retry-After %q, %s, want 503 unavailable", a.status, a.header.Get("Retry-After"), a.body)
	}
}
