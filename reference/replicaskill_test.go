//go:build unix

package main_test

import (
	"net/http"
	"strings"
	"testing"
)

// One of three replicas is killed under load. Only requests to that one fail, and a client
// that sends its pet to another replica again gets the same pet, whether or not the first
// one had stored it.
func TestOneOfThreeReplicasIsKilled(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		f := newFleet(t, 3, database, "")
		reader := f.roomyKey(t, "reader")
		load := startTraffic(t, f.balancer.url, f.roomyKey(t, "ann"), 8)
		load.flows(t, 100)
		killed := f.replicas[0]
		killed.kill()
		f.replicas = f.replicas[1:]
		load.flows(t, 100)
		load.stop()

		for _, failed := range load.failed {
			if !strings.Contains(failed.text, noAnswer(killed)) {
				t.Errorf("a request to a replica that was not killed failed: %s", failed.text)
			}
			if failed.method != http.MethodPost {
				continue
			}
			first := failed.mustSend(t, http.StatusCreated, f.replicas[0].api)
			again := failed.mustSend(t, http.StatusCreated, f.replicas[1].api)
			if string(first.body) != string(again.body) || again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("the same request to two replicas is answered with %s and %s, want the same pet", first.body, again.body)
			}
			load.acknowledged(t, failed.call, first)
		}
		load.checkStored(t, f, reader, 0)
		t.Logf("%d requests, %d pets, %d requests failed", load.sent, len(load.pets), len(load.failed))
	})
}
