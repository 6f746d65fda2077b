package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// postOnce creates a pet with an idempotency key, and returns an error if there is no
// answer.
func postOnce(t *testing.T, p *process, key, idempotencyKey string) error {
	r, err := http.NewRequestWithContext(t.Context(), "POST", p.api+"/v1/pets", strings.NewReader(`{"name":"Rex","categoryId":1}`))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", `"`+idempotencyKey+`"`)
	r.GetBody = nil // the client of net/http would repeat the request by itself
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 201 {
		t.Errorf("POST /v1/pets: answered with %d, want 201", resp.StatusCode)
	}
	return nil
}

// Each request that a killed server did not answer is sent again after its restart.
// There is one pet for each, whether or not the first server had stored it.
func TestRepeatedAfterKill(t *testing.T) {
	dir := t.TempDir()
	key := roomyKey(t, dir, "ada")
	pets, unanswered := 0, 0
	for round := range 3 {
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
