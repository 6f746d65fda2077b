package main

import (
	"fmt"
	"time"
)

// measureLatency compares the latencies of a page with those of a bare server, at half of
// the rate that petstore can answer.
func measureLatency(b *bench) error {
	s, err := b.newPetstore("")
	if err != nil {
		return err
	}
	if err := s.addPets(100); err != nil {
		return err
	}
	page := get("/v1/pets", s.key)
	a, _, err := exchange(s.api, page)
	if err != nil {
		return err
	}
	bare, err := b.startBare([]answer{a})
	if err != nil {
		return err
	}
	perS, err := b.halfLoad(s, page)
	if err != nil {
		return err
	}
	quantiles := []float64{0.5, 0.99, 0.999}
	ours, theirs := make([][]time.Duration, len(quantiles)), make([][]time.Duration, len(quantiles))
	for range b.rounds {
		for _, server := range []struct {
			address string
			took    [][]time.Duration
		}{{bare.addresses[0], theirs}, {s.api, ours}} {
			took, err := load{address: server.address, request: page, perS: perS, duration: b.duration}.run(b.ctx)
			if err != nil {
				return err
			}
			for i, q := range quantiles {
				server.took[i] = append(server.took[i], took.at(q))
			}
		}
		if err := s.emptyLog(); err != nil {
			return err
		}
	}
	t := table{
		title: "Latency at half load",
		text: fmt.Sprintf("`GET /v1/pets` with 20 pets, %.0f requests a second on %d connections: half of what petstore answers at most. "+
			"The bare server shows what of it is due to the program that sends the requests and to the machine. "+
			"Milliseconds, medians of %d rounds of %v each.", perS, connections, b.rounds, b.duration),
		columns: []string{"percentile", "petstore", "bare", "more than bare"},
	}
	for i, name := range []string{"50th", "99th", "99.9th"} {
		x, y := median(ours[i]), median(theirs[i])
		t.rows = append(t.rows, []string{name, millis(x), millis(y), millis(x - y)})
	}
	b.tables = append(b.tables, t)
	return s.stop()
}

// halfLoad returns half of the rate at which a server can answer a request.
func (b *bench) halfLoad(s *petstore, r request) (perS float64, err error) {
	full, err := b.measureRate(s.process, s.api, r, b.duration)
	if err != nil {
		return 0, err
	}
	return full.perS / 2, s.emptyLog()
}
