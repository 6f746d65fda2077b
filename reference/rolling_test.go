//go:build unix

package main_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// Each replica is restarted under load. No request fails, no pet, no use and no count is
// lost, and no quota is exceeded.
func TestRollingRestart(t *testing.T) {
	testenv.Long(t, "restarts every server in turn")
	onEachDatabase(t, func(t *testing.T, database string) {
		f := newFleet(t, 3, database, "")
		reader := f.roomyKey(t, "reader")
		f.undisturbed(t, func(owner string) func() {
			before := len(petIDs(t, f.replicas[0], reader))
			limited := f.key(t, "limited "+owner, "60/8784h")
			load := startTraffic(t, f.balancer.url, f.roomyKey(t, owner), 4)
			few := &crowd{call: call{key: limited}, charged: 200}
			for i := range f.replicas {
				few.run(t, f.balancer.url, 3, 8)
				load.flows(t, 50)
				f.restart(t, i)
			}
			few.run(t, f.balancer.url, 3, 8)
			load.flows(t, 50)
			load.stop()
			return func() {
				t.Helper()
				t.Logf("%d requests, %d pets, %d requests of the deprecated operation", load.admitted, len(load.pets), load.retired)
				for _, failed := range load.failed {
					t.Errorf("%s %s failed: %s", failed.method, failed.path, failed.text)
				}
				if few.admitted != 60 {
					t.Errorf("%d requests of the limited owner were admitted, want 60", few.admitted)
				}
				load.checkStored(t, f, reader, before)
				f.checkUsed(t, load.key, load.admitted)
				f.stopAll(t)
				checkCounts(t, f, owner, load)
			}
		})
	})
}

// checkCounts fails unless the database has each request of an owner, after all replicas
// have ended.
func checkCounts(t *testing.T, f *fleet, owner string, load *traffic) {
	t.Helper()
	db := f.openStore(t)
	days, err := db.ListDailyUse(t.Context(), owner, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	allowed := int64(0)
	for _, day := range days {
		allowed += day.Allowed
	}
	if allowed != load.admitted {
		t.Errorf("%d requests are counted by day, want %d", allowed, load.admitted)
	}
	uses, err := db.ListDeprecatedUse(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	retired := int64(0)
	for _, use := range uses {
		if use.Owner == owner {
			retired += use.Count
		}
	}
	if retired != load.retired {
		t.Errorf("%d requests of the deprecated operation are counted, want %d", retired, load.retired)
	}
}

// A client that keeps its connection to one replica, without a balancer, learns from
// Connection: close that it must connect again, and loses no request if it then chooses a
// replica that is ready.
func TestClientsWithoutABalancerMoveOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, "petstore.db", "")
	key := f.roomyKey(t, "ann")
	leaving, other := f.replicas[0], f.replicas[1]
	const clients = 4
	var begun, wg sync.WaitGroup
	begun.Add(clients)
	for range clients {
		wg.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			at, closed := leaving, 0
			for i := 0; closed == 0 || i < 20; i++ {
				r, err := http.NewRequestWithContext(t.Context(), "GET", at.api+"/v1/pets", nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+key)
				resp, err := transport.RoundTrip(r)
				if err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
				resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Errorf("a request is answered with %d, want 200", resp.StatusCode)
				}
				if i == 0 {
					begun.Done()
				}
				if resp.Close {
					closed++
					at = other
				}
			}
			if closed != 1 {
				t.Errorf("%d connections were closed, want the one to the replica that ends", closed)
			}
		})
	}
	begun.Wait()
	f.stop(t, 0)
	wg.Wait()
}
