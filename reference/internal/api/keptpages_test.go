package api_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// twoServers returns two servers on one database, each with a handle of its own.
func twoServers(t *testing.T) [2]*service {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shared.db")
	var servers [2]*service
	for i := range servers {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		servers[i] = start(t, func(c *api.Config) { c.Pets = db })
	}
	return servers
}

// Pages are kept, and yet each response has all pets that its server had acknowledged when
// its request began, whatever its form.
func TestListsHaveWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	servers := twoServers(t)
	const pets = 90
	var acknowledged [2]atomic.Int64 // by server
	var writers, readers sync.WaitGroup
	for i := range servers {
		writers.Go(func() {
			for range pets / len(servers) {
				resp := servers[i].Post(t, "/v1/pets", `{"name":"x","categoryId":1,"status":"sold"}`)
				if resp.StatusCode != 201 {
					t.Errorf("POST: status %d, want 201", resp.StatusCode)
					return
				}
				acknowledged[i].Add(1)
			}
		})
	}
	done := make(chan struct{})
	for i, request := range []contract.Request{
		{Target: "/v1/pets?limit=100"},
		{Target: "/v1/pets?limit=100&status=sold"},
		{Target: "/v1/pets?limit=100", Header: []string{acceptGzip}},
		{Target: "/v1/pets?limit=100"},
	} {
		readers.Go(func() {
			header, last := request.Header, 0
			for {
				least := int(acknowledged[i%len(servers)].Load())
				resp := servers[i%len(servers)].Do(t, contract.Request{Target: request.Target, Header: header})
				if resp.StatusCode == 200 {
					last = len(decode[[]wirePet](t, resp))
				}
				if resp.StatusCode != 200 && resp.StatusCode != 304 || last < least {
					t.Errorf("%s: status %d, %d pets, want the %d that were acknowledged before", request.Target, resp.StatusCode, last, least)
					return
				}
				header = append(request.Header[:len(request.Header):len(request.Header)], "If-None-Match: "+resp.Header.Get("ETag"))
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	for i, s := range servers {
		n := 0
		for range 1000 { // soon it has those of the other server
			if n = len(decode[[]wirePet](t, s.Get(t, "/v1/pets?limit=100"))); n == pets {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n != pets {
			t.Errorf("server %d lists %d pets, want %d", i, n, pets)
		}
	}
}

// A pet that another server stores is found, and then kept with its preconditions.
func TestPetOfAnotherServer(t *testing.T) {
	t.Parallel()
	servers := twoServers(t)
	want(t, servers[0].Get(t, "/v1/pets/1"), 404, "pet_not_found")
	want(t, servers[1].Post(t, "/v1/pets", `{"name":"x","categoryId":1}`), 201, "")
	for _, s := range servers {
		for range 2 {
			want(t, s.Get(t, "/v1/pets/1"), 200, "")
		}
		etag := s.Get(t, "/v1/pets/1").Header.Get("ETag")
		want(t, s.Get(t, "/v1/pets/1", "If-None-Match: "+etag), 304, "")
		want(t, s.Get(t, "/v1/pets/1", `If-Match: "x"`), 412, "precondition_failed")
	}
}

// countingStore counts the lists that are read, and has a version if the store has.
type countingStore struct {
	*sqlite.Store
	lists atomic.Int64
}

func (s *countingStore) ListPets(ctx context.Context, q store.ListQuery) ([]store.Pet, bool, error) {
	s.lists.Add(1)
	return s.Store.ListPets(ctx, q)
}

// A list is read once however its query is written, and again for another query.
func TestListIsReadOncePerQuery(t *testing.T) {
	t.Parallel()
	var counted *countingStore
	s := start(t, func(c *api.Config) {
		counted = &countingStore{Store: c.Pets.(*sqlite.Store)}
		c.Pets = counted
	})
	s.pets(t, 30)
	for _, test := range []struct {
		target string
		reads  int64
	}{
		{"/v1/pets", 1},
		{"/v1/pets?", 1},
		{"/v1/pets?limit=20&x=y", 1},
		{"/v1/pets?%6cimit=20", 1},
		{"/v1/pets?limit=21", 2},
		{"/v1/pets?status=sold", 3},
		{"/v1/pets?status=sold&limit=20", 3},
		{"/v1/pets?limit=x", 3},
	} {
		s.Get(t, test.target)
		s.Do(t, contract.Request{Method: "HEAD", Target: test.target})
		if n := counted.lists.Load(); n != test.reads {
			t.Errorf("after %s, %d lists were read, want %d", test.target, n, test.reads)
		}
	}
}

// A client of one response cannot change that of another: the kept header fields are
// those of all.
func TestKeptHeadersAreNotShared(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.Origins = []string{"https://app.example"} })
	s.pets(t, 50)
	plain := s.Get(t, "/v1/pets?limit=40", acceptGzip).Header
	for range 3 {
		s.Get(t, "/v1/pets?limit=40", acceptGzip, "Origin: https://app.example")
	}
	again := s.Get(t, "/v1/pets?limit=40", acceptGzip).Header
	for _, name := range []string{"Vary", "Link", "ETag", "Content-Type", "Content-Length", "Content-Encoding"} {
		if got, want := fmt.Sprint(again.Values(name)), fmt.Sprint(plain.Values(name)); got != want {
			t.Errorf("%s is %s after requests of a page, want %s as before", name, got, want)
		}
	}
}
