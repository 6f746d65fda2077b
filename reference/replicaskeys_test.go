//go:build unix

package main_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/keys"
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
			if err != nil {
				t.Fatal(err)
			}
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

// What is changed about a key through one replica, or by a command on the database, acts
// on all replicas within a second, and an answer from before is not used for longer: not
// that a key is valid, and not that it is unknown.
func TestChangesOfKeysActOnEachReplica(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		f := newFleet(t, 3, database, "anonymous: [1000000/minute]\npenalty: {strikes: 0}\n")
		ways := map[string]func(args ...string) string{
			"a command on the database": func(args ...string) string { return f.petstore(t, args...) },
			"a replica": func(args ...string) string {
				return f.petstore(t, append(args, "--admin", adminListen(f.replicas[0]))...)
			},
		}
		for way, run := range ways {
			t.Run(way, func(t *testing.T) {
				owner := strings.ReplaceAll(way, " ", "-")
				key := run("keys", "create", "--name=test", "--owner="+owner, "--plan=pro")
				f.holdsOnEach(t, call{key: key}, http.StatusOK, time.Now())
				id := f.keyID(t, owner)

				fresh := run("keys", "rotate", id, "--overlap=1h")
				f.holdsOnEach(t, call{key: fresh}, http.StatusOK, time.Now())
				f.allAnswer(t, call{key: key}, http.StatusOK) // until the overlap ends

				run("keys", "revoke", id)
				f.holdsOnEach(t, call{key: key}, http.StatusUnauthorized, time.Now())
				f.allAnswer(t, call{key: fresh}, http.StatusOK)
			})
		}
	})
}

// A key that is stored a moment after it was refused is valid within a second.
func TestAKeyThatWasUnknown(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		f := newFleet(t, 3, database, "anonymous: [1000000/minute]\npenalty: {strikes: 0}\n")
		secret, err := keys.NewSecret()
		if err != nil {
			t.Fatal(err)
		}
		c := call{key: secret.Reveal()}
		f.allAnswer(t, c, http.StatusUnauthorized)
		_, err = f.openStore(t).CreateKey(t.Context(), store.NewKey{
			Digest: secret.Digest(), LastFour: secret.LastFour(), Name: "test", Owner: "ann", Plan: "pro", Created: time.Now(),
		}, store.Actor{Name: "test"})
		if err != nil {
			t.Fatal(err)
		}
		f.holdsOnEach(t, c, http.StatusOK, time.Now())
	})
}

// keyID returns the ID of the only key of an owner.
func (f *fleet) keyID(t *testing.T, owner string) string {
	t.Helper()
	for line := range strings.Lines(f.petstore(t, "keys", "list")) {
		if strings.Contains(line, owner) {
			return strings.Fields(line)[0]
		}
	}
	t.Fatalf("there is no key of %s", owner)
	return ""
}
