//go:build unix

package postgres_test

import (
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A program that reads the audit log after the last ID that it has seen misses no entry,
// though several servers write it.
func TestAuditIDsAreInTheOrderOfCommits(t *testing.T) {
	url := postgrestest.Database(t)
	var writers sync.WaitGroup
	const servers, callers, each = 2, 6, 25
	for server := range servers {
		s := open(t, url, postgres.Options{})
		for caller := range callers {
			writers.Go(func() {
				for n := range each {
					var err error
					if n%2 == 0 {
						e := store.AuditEntry{At: noon, Actor: "admin", Action: store.BanEnd, Target: "owner:ada"}
						err = s.AddAudit(t.Context(), e)
					} else {
						d := store.Digest{1, byte(server), byte(caller), byte(n)}
						_, err = s.CreateKey(t.Context(), store.NewKey{Digest: d, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}, store.Actor{Name: "admin"})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() {
		writers.Wait()
		close(done)
	}()
	reader := open(t, url, postgres.Options{})
	seen, last := map[int64]bool{}, int64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		entries, err := reader.ListAudit(t.Context(), store.AuditQuery{Limit: store.MaxAudit})
		if err != nil {
			t.Fatal(err)
		}
		before := last
		for _, e := range entries {
			if !seen[e.ID] && e.ID <= before {
				t.Errorf("entry %d appears after entry %d", e.ID, before)
			}
			seen[e.ID], last = true, max(last, e.ID)
		}
	}
	if len(seen) != servers*callers*each {
		t.Errorf("the audit log has %d entries, want %d", len(seen), servers*callers*each)
	}
}
