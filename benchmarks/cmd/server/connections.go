package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A disturbance is what other clients, or the operator, do meanwhile.
type disturbance struct {
	name string

	// begin starts it until ctx ends. It returns when it is in full swing, and what it
	// has started ends wg.
	begin func(ctx context.Context, wg *sync.WaitGroup, s *petstore) error
}

func (b *bench) disturbances() []disturbance {
	idle := b.size(10_000, 10_000, 200)
	return []disturbance{
		{fmt.Sprintf("%d idle connections", idle), func(ctx context.Context, wg *sync.WaitGroup, s *petstore) error {
			return beIdle(ctx, wg, s, idle)
		}},
		{fmt.Sprintf("%d slow readers", connections), readSlowly},
		{fmt.Sprintf("%d slow writers", connections), writeSlowly},
		{"500 new connections a second", connectAnew},
	}
}

// measureConnections compares the latencies of a page with and without disturbances.
func measureConnections(b *bench) error {
	s, err := b.newPetstore("")
	if err != nil {
		return err
	}
	if err := s.addPets(100); err != nil {
		return err
	}
	page := get("/v1/pets", s.key)
	perS, err := b.halfLoad(s, page)
	if err != nil {
		return err
	}
	perS /= 2 // what disturbs needs processors too
	t := table{
		title: "Other clients",
		text: fmt.Sprintf("The 99th percentile of `GET /v1/pets` with 20 pets, %.0f requests a second on %d connections, a quarter of what petstore answers at most, "+
			"without and with what is in the first column. Milliseconds, medians of %d rounds of %v each; the difference is the median of the rounds' differences. "+
			"Slow readers send many requests for 100 pets and read a byte every 50 ms; slow writers send a byte of a request every 50 ms.",
			perS, connections, b.rounds, b.duration),
		columns: []string{"meanwhile", "without", "with", "more"},
	}
	l := load{address: s.api, request: page, perS: perS, duration: b.duration}
	for _, d := range b.disturbances() {
		var without, with, more []time.Duration
		for range b.rounds {
			if err := s.settle(b.ctx); err != nil { // after the disturbance before
				return err
			}
			before, err := l.run(b.ctx)
			if err != nil {
				return err
			}
			during, err := l.disturbed(b.ctx, s, d)
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			without, with = append(without, before.at(0.99)), append(with, during.at(0.99))
			more = append(more, during.at(0.99)-before.at(0.99))
			if err := s.emptyLog(); err != nil {
				return err
			}
		}
		t.rows = append(t.rows, []string{d.name, millis(median(without)), millis(median(with)), millis(median(more))})
	}
	b.tables = append(b.tables, t)
	return s.stop()
}

// disturbed runs the load during a disturbance.
func (l load) disturbed(ctx context.Context, s *petstore, d disturbance) (latencies, error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	disturbing, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.begin(disturbing, &wg, s); err != nil {
		return nil, err
	}
	l.duration = max(l.duration, time.Second) // also with -quick: the settings are reloaded twice a second
	return l.run(ctx)
}
