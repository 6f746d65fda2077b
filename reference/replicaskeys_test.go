//go:build unix

package main_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// keyDelay is how long a change of a key may take to act on a replica.
const keyDelay = time.Second

// holdsOnEach sends a request to each replica until it is answered with a status, and
// fails if a request that began too long after an instant is answered otherwise.
func (f *fleet) holdsOnEach(t *testing.T, c call, status int, changed time.Time) {
	t.Helper()
	for i, p := range f.replicas {
		for {
			began := time.Now()
			a, err := c.send(t.Context(), p.api)
			must(t, err)
			if a.status == status {
				break
			}
			if after := began.Sub(changed); after > keyDelay {
				t.Errorf("replica %d answered a request with %d that began %v after the change of its key, want %d\n%s",
					i+1, a.status, after.Round(time.Millisecond), status, a.body)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// allAnswer fails unless each replica answers with a status.
func (f *fleet) allAnswer(t *testing.T, c call, status int) {
	t.Helper()
	for _, p := range f.replicas {
		c.mustSend(t, status, p.api)
	}
}

// What a command changes about a key acts on all replicas within a second, and an answer from before is not used for longer: not
// that a key is valid, and not that it is unknown.
func (f *fleet) testChangesOfKeys(t *testing.T) {
	t.Run("a command", func(t *testing.T) {
		t.Parallel()
		key := f.petstore(t, "keys", "create", "--name=test", "--owner=cyd", "--plan=pro")
		f.holdsOnEach(t, call{key: key}, http.StatusOK, time.Now())
		id := keyID(t, f.dir, "--config=petstore.yaml", "cyd")

		fresh := f.petstore(t, "keys", "rotate", id, "--overlap=1h")
		f.holdsOnEach(t, call{key: fresh}, http.StatusOK, time.Now())
		f.allAnswer(t, call{key: key}, http.StatusOK) // until the overlap ends

		f.petstore(t, "keys", "revoke", id)
		f.holdsOnEach(t, call{key: key}, http.StatusUnauthorized, time.Now())
		f.allAnswer(t, call{key: fresh}, http.StatusOK)
	})
	t.Run("a key that was unknown", func(t *testing.T) {
		t.Parallel()
		secret, err := api.NewKey()
		must(t, err)
		c := call{key: secret.Reveal()}
		f.allAnswer(t, c, http.StatusUnauthorized)
		_, err = f.openStore(t).CreateKey(t.Context(), store.NewKey{
			Digest: secret.Digest(), LastFour: secret.LastFour(), Name: "test", Owner: "new", Plan: "pro", Created: time.Now(),
		}, store.Actor{Name: "test"})
		must(t, err)
		f.holdsOnEach(t, c, http.StatusOK, time.Now())
	})
}

// bansOf returns the bans that a replica lists.
func (f *fleet) bansOf(t *testing.T, p *process) (bans []admin.Ban) {
	t.Helper()
	list := f.petstore(t, "bans", "list", "--json", adminListen(p))
	if err := json.Unmarshal([]byte(list), &bans); err != nil {
		t.Fatalf("%v in %s", err, list)
	}
	return bans
}

// However many replicas deny a client at once, it gets one ban, and each of them knows it.
func (f *fleet) testBan(t *testing.T) {
	key := f.key(t, "bob", "10/8784h")
	c := &crowd{call: call{key: key}, charged: 200}
	c.run(t, f.replicas, 8, 10)
	for _, p := range f.replicas {
		bans := slices.DeleteFunc(f.bansOf(t, p), func(b admin.Ban) bool { return b.Owner != "bob" })
		if len(bans) != 1 || bans[0].Level != 1 {
			t.Errorf("the bans of the owner are %+v, want one, the first", bans)
		}
		if a := (call{key: key}).mustSend(t, 429, p.api); a.code() != "api_key_banned" {
			t.Errorf("a replica answers an owner that is banned with %s", a.code())
		}
	}
}

func (f *fleet) testFirstKey(t *testing.T) {
	var notices []string
	for _, p := range f.replicas {
		if p.notice != "" {
			notices = append(notices, p.notice)
		}
	}
	if len(notices) != 1 {
		t.Fatalf("%d replicas showed a key, want 1", len(notices))
	}
	first, err := readFirstKey(notices[0])
	must(t, err)
	f.allAnswer(t, call{key: first.key}, http.StatusOK)
}
