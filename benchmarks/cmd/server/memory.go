package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
)

// A state is one of a server whose memory is measured.
type state struct {
	name  string
	bare  bool // of the bare server
	each  int  // how many connections or subjects there are
	begin func(context.Context, *sync.WaitGroup, *petstore) error
}

func (b *bench) states() []state {
	idle, subjects := b.size(10_000, 10_000, 200), b.size(1_000_000, 100_000, 1000)
	rest := func(context.Context, *sync.WaitGroup, *petstore) error { return nil }
	beIdle := func(ctx context.Context, wg *sync.WaitGroup, s *petstore) error { return beIdle(ctx, wg, s, idle) }
	work := func(_ context.Context, _ *sync.WaitGroup, s *petstore) error {
		_, err := b.measureRate(s.process, s.api, get("/v1/pets", s.key), b.duration)
		return err
	}
	addSubjects := func(_ context.Context, _ *sync.WaitGroup, s *petstore) error { return s.addSubjects(subjects) }
	return []state{
		{name: "at rest", begin: rest},
		{name: "after load", begin: work},
		{name: fmt.Sprintf("with %d idle connections", idle), each: idle, begin: beIdle},
		{name: fmt.Sprintf("with %d subjects", subjects), each: subjects, begin: addSubjects},
		{name: "bare, at rest", bare: true, begin: rest},
		{name: fmt.Sprintf("bare, with %d idle connections", idle), bare: true, each: idle, begin: beIdle},
	}
}

// measureMemory measures the resident memory of servers in several states, each of a new
// server.
func measureMemory(b *bench) error {
	t := table{
		title: "Memory",
		text: "Resident memory of a server with 100 pets, in MiB, when it has nothing to do. The load before is `GET /v1/pets`, as fast as the server answers " +
			"on 64 connections. The last column is what one idle connection or one subject adds, in bytes. The bare server has the first page of pets.",
		columns: []string{"server", "MiB", "each, bytes"},
	}
	rest := map[bool]int64{}
	for _, state := range b.states() {
		used, err := b.memoryOf(state)
		if err != nil {
			return fmt.Errorf("%s: %w", state.name, err)
		}
		each := ""
		if state.each > 0 {
			each = fmt.Sprintf("%.0f", float64(used-rest[state.bare])/float64(state.each))
		} else if _, known := rest[state.bare]; !known {
			rest[state.bare] = used
		}
		t.rows = append(t.rows, []string{state.name, mebibytes(used), each})
	}
	b.tables = append(b.tables, t)
	return nil
}

// memoryOf returns the memory of a new server in a state.
func (b *bench) memoryOf(state state) (int64, error) {
	s, err := b.newPetstore(manyNetworks)
	if err != nil {
		return 0, err
	}
	defer b.end()
	if err := s.addPets(100); err != nil {
		return 0, err
	}
	if state.bare {
		a, _, err := exchange(s.api, get("/v1/pets", s.key))
		if err != nil {
			return 0, err
		}
		bare, err := b.startBare([]answer{a})
		if err != nil {
			return 0, err
		}
		s = &petstore{process: bare.process, api: bare.addresses[0], key: s.key, bench: b}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	if err := state.begin(ctx, &wg, s); err != nil {
		return 0, err
	}
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	return s.memory()
}

// addSubjects sends a request without a key from each of many networks, which are an
// IPv6 /64 each.
func (s *petstore) addSubjects(n int) error {
	request := get("/v1/pets", "").answered(401).with("X-Forwarded-For", "2001:db8:0000:0000::1")
	at := bytes.Index(request.bytes(s.api), []byte(":0000:0000::1"))
	vary := func(request []byte, n int) { copy(request[at:], fmt.Sprintf(":%04x:%04x", n>>16, n&0xffff)) }
	l := load{address: s.api, request: request, total: n, vary: vary}
	if _, err := l.run(s.bench.ctx); err != nil {
		return err
	}
	return s.emptyLog()
}
