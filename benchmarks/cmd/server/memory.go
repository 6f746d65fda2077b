package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// measureMemory measures the resident memory of a server that does nothing, that works, and
// that has many idle connections or many subjects.
func measureMemory(b *bench) error {
	idle, subjects := b.size(10_000, 10_000, 200), b.size(1_000_000, 100_000, 1000)
	t := table{
		title: "Memory",
		text: "Resident memory of a server with 100 pets, in MiB. Under load it answers `GET /v1/pets` as fast as it can to 64 connections. " +
			"The last column is what one connection or one subject takes, in bytes.",
		section: "memory",
		columns: []string{"server", "MiB", "each, bytes"},
	}
	rest, err := b.memoryOf(func(context.Context, *sync.WaitGroup, *petstore) error { return nil })
	if err != nil {
		return err
	}
	t.rows = append(t.rows, []string{"at rest", mebibytes(rest), ""})
	for _, m := range []struct {
		name  string
		each  int
		begin func(context.Context, *sync.WaitGroup, *petstore) error
	}{
		{"under load", 0, func(_ context.Context, _ *sync.WaitGroup, s *petstore) error {
			_, err := s.bench.measureRate(s.process, s.api, get("/v1/pets", s.key), s.bench.duration)
			return err
		}},
		{fmt.Sprintf("with %d idle connections", idle), idle, func(ctx context.Context, wg *sync.WaitGroup, s *petstore) error {
			return beIdle(ctx, wg, s, idle)
		}},
		{fmt.Sprintf("with %d subjects", subjects), subjects, func(_ context.Context, _ *sync.WaitGroup, s *petstore) error {
			return s.addSubjects(subjects)
		}},
	} {
		used, err := b.memoryOf(m.begin)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		each := ""
		if m.each > 0 {
			each = fmt.Sprintf("%.0f", float64(used-rest)/float64(m.each))
		}
		t.rows = append(t.rows, []string{m.name, mebibytes(used), each})
	}
	b.tables = append(b.tables, t)
	return nil
}

// memoryOf returns the memory of a new server in the state that begin brings about. It
// waits a moment, so that everything that was begun has ended.
func (b *bench) memoryOf(begin func(context.Context, *sync.WaitGroup, *petstore) error) (int64, error) {
	s, err := b.newPetstore(manyNetworks)
	if err != nil {
		return 0, err
	}
	if err := s.addPets(100); err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	if err := begin(ctx, &wg, s); err != nil {
		return 0, err
	}
	pause(ctx, time.Second)
	used, err := s.memory()
	if err != nil {
		return 0, err
	}
	return used, s.stop()
}
