package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// load is what clients have seen of a server until it died.
type load struct {
	mu           sync.Mutex
	pets         map[int64]bool // that were acknowledged
	acknowledged []time.Time    // when each answer came
	sent         int64
}

// clients sends requests from several clients until the server is gone: new pets,
// and now and then a list.
func (l *load) clients(t *testing.T, p *process, key string, n int) (wait func()) {
	l.pets = map[int64]bool{}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for l.one(t, p, key) {
			}
		})
	}
	return wg.Wait
}

// one sends one request, and reports whether the server was there to answer it.
func (l *load) one(t *testing.T, p *process, key string) bool {
	l.mu.Lock()
	l.sent++
	l.mu.Unlock()
	method, body, want := "POST", `{"name":"Rex","categoryId":1}`, 201
	if rand.IntN(10) == 0 {
		method, body, want = "GET", "", 200
	}
	a, err := ask(t.Context(), method, p.api+"/v1/pets", key, body)
	if err != nil {
		return false
	}
	if a.status != want {
		t.Errorf("%s /v1/pets under load: answered with %d, want %d\n%s", method, a.status, want, a.body)
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged = append(l.acknowledged, time.Now())
	if method == "POST" {
		var pet struct{ ID int64 }
		if err := json.Unmarshal(a.body, &pet); err != nil {
			t.Errorf("%v in %s", err, a.body)
			return false
		}
		l.pets[pet.ID] = true
	}
	return true
}

func (l *load) answers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// before returns how many answers came until an instant.
func (l *load) before(at time.Time) (n int64) {
	for _, when := range l.acknowledged {
		if when.Before(at) {
			n++
		}
	}
	return n
}

func TestKilledUnderLoad(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", `
plans:
  enterprise: custom
  small: [1/8784h]
penalty: {strikes: 1, grace: 0s, ban: 1h, growth: 2, max: 24h, forgive: 24h}
`)
	key := roomyKey(t, dir, "ada")
	banned := petstore(t, dir, "keys", "create", "--config=petstore.yaml", "--name=test", "--owner=eve", "--plan=small")

	p := serve(t, dir, "--config=petstore.yaml")
	for _, want := range []int{200, 429, 429} {
		mustAsk(t, want, "GET", p.api+"/v1/pets", banned, "")
	}
	var l load
	wait := l.clients(t, p, key, 8)
	begin := time.Now()
	eventually(t, "more than a second of load", func() bool {
		return time.Since(begin) > 1500*time.Millisecond && l.answers() > 100
	})
	killed := time.Now()
	p.kill()
	wait()

	p = serve(t, dir, "--config=petstore.yaml")
	a := mustAsk(t, 429, "GET", p.api+"/v1/pets", banned, "")
	if !strings.Contains(string(a.body), "api_key_banned") {
		t.Errorf("the owner that was banned gets %s, want the ban", a.body)
	}
	// The answers that came more than a second before were saved; a request that
	// was charged and never answered may have been.
	least := l.before(killed.Add(-time.Second))
	if n := used(t, p, key); n < least || n > l.sent {
		t.Errorf("%d requests are counted, want %d, which were answered more than a second before the end, to %d, which were sent",
			n, least, l.sent)
	}
	stored := petIDs(t, p, key)
	for id := range l.pets {
		if !stored[id] {
			t.Errorf("pet %d was acknowledged and is not there", id)
		}
	}
	t.Logf("%d pets and %d answers, %d of them more than a second before the end", len(l.pets), len(l.acknowledged), least)
	if least == 0 || len(l.pets) == 0 {
		t.Error("there was no load worth the name")
	}
}

func TestDeprecatedUseIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	p := serve(t, dir)
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, `{"name":"Rex","categoryId":1}`)
	for range 3 {
		mustAsk(t, 200, "GET", p.api+"/v1/pets/1", key, "")
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if got, want := deprecatedUse(t, dir), "getPet ada 3"; got != want {
		t.Errorf("deprecated use is %q, want %q", got, want)
	}
}

func deprecatedUse(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	for _, u := range listDeprecatedUse(t, dir) {
		lines = append(lines, fmt.Sprint(u.Operation, " ", u.Owner, " ", u.Count))
	}
	return strings.Join(lines, "\n")
}

// postOnce creates a pet with an idempotency key, and returns an error if there is no
// answer.
func postOnce(t *testing.T, p *process, key, idempotencyKey string) error {
	a, err := call{method: "POST", key: key, once: idempotencyKey}.send(t.Context(), p.api)
	if err == nil && a.status != 201 {
		t.Errorf("POST /v1/pets: answered with %d, want 201", a.status)
	}
	return err
}

// Each request that a killed server did not answer is sent again after its restart.
// There is one pet for each, whether or not the first server had stored it.
func TestRepeatedAfterKill(t *testing.T) {
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	pets, unanswered := 0, 0
	for round := range 2 {
		p := serve(t, dir)
		var mu sync.Mutex
		var lost []string
		answered := 0
		var wg sync.WaitGroup
		for client := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					name := fmt.Sprintf("%d-%d-%d", round, client, i)
					err := postOnce(t, p, key, name)
					mu.Lock()
					if err != nil {
						lost = append(lost, name)
						mu.Unlock()
						return
					}
					answered++
					mu.Unlock()
				}
			})
		}
		eventually(t, "some load", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return answered > 100+30*round
		})
		p.kill()
		wg.Wait()

		p = serve(t, dir)
		for _, name := range lost {
			for range 2 {
				if err := postOnce(t, p, key, name); err != nil {
					t.Fatal(err)
				}
			}
		}
		pets += answered + len(lost)
		unanswered += len(lost)
		if got := len(petIDs(t, p, key)); got != pets {
			t.Errorf("round %d: there are %d pets, want %d: one for each request", round, got, pets)
		}
		p.kill()
	}
	t.Logf("%d requests, %d of them not answered", pets, unanswered)
}
