package main_test

import (
	"testing"
	"time"
)

// A server that is killed under load has each pet that it acknowledged, the bans, and the
// usage up to a second before. Each request that it did not answer is sent again after its
// restart: there is one pet for each, whether or not the first server had stored it.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", `
plans:
  enterprise: custom
  small: [1/8784h]
penalty: {strikes: 1, grace: 0s, ban: 1h, growth: 2, max: 24h, forgive: 24h}
`)
	key, reader := roomyKey(t, dir, "ada"), roomyKey(t, dir, "reader")
	banned := petstore(t, dir, "keys", "create", "--config=petstore.yaml", "--name=test", "--owner=eve", "--plan=small")

	p := serve(t, dir, "--config=petstore.yaml")
	for _, want := range []int{200, 429, 429} {
		mustAsk(t, want, "GET", p.api+"/v1/pets", banned, "")
	}
	load := startTraffic(t, p.api, key, 8)
	load.flows(t, 100)
	least, saved := load.answered(), time.Now().Add(time.Second)
	eventually(t, "a second of load", func() bool { return time.Now().After(saved) })
	p.kill()
	load.stop()

	p = serve(t, dir, "--config=petstore.yaml")
	if a := mustAsk(t, 429, "GET", p.api+"/v1/pets", banned, ""); a.code() != "api_key_banned" {
		t.Errorf("the owner that was banned gets %s, want the ban", a.body)
	}
	// A request that was charged and not answered may have been saved.
	if n := used(t, p, key); n < least || n > load.sent {
		t.Errorf("%d requests are counted, want %d, which were answered more than a second before the end, to %d, which were sent",
			n, least, load.sent)
	}
	for _, failed := range load.failed {
		if failed.method == "POST" {
			load.acknowledged(t, failed.call, failed.mustSend(t, 201, p.api))
			load.acknowledged(t, failed.call, failed.mustSend(t, 201, p.api))
		}
	}
	if stored := load.checkStored(t, p, reader); stored != len(load.pets) {
		t.Errorf("there are %d pets, want %d: one for each request", stored, len(load.pets))
	}
	t.Logf("%d requests, %d pets, %d requests not answered", load.sent, len(load.pets), len(load.failed))
}
