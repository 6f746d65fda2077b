package main

import (
	"fmt"
	"regexp"
	"strconv"
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
			"Each request has its time, and its latency counts from then on even if the server was not ready for it. "+
			"The bare server shows what of it is due to the program that sends the requests and to the machine. "+
			"Milliseconds, medians of %d rounds of %v each.", perS, connections, b.rounds, b.duration),
		section: "latency",
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

// read finds the results of BenchmarkListPets.
var read = regexp.MustCompile(`BenchmarkListPets/pets=(\d+)/status=(\w*)/page=(\w+)\S*\s+\d+\s+([0-9.]+) ns/op`)

// measureReading compares reading a page from small and large databases, without the
// server and what it has kept.
func (b *bench) measureReading() error {
	binary, err := b.testBinary("./internal/sqlite")
	if err != nil {
		return err
	}
	args := []string{"env", "TMPDIR=" + b.dir, binary, "-test.run", "^$", "-test.bench", "^BenchmarkListPets$", "-test.cpu", "1", "-test.benchtime", "300ms"}
	if b.long {
		args = append(args, "-long") // with a million pets as well
	}
	type page struct{ status, which string }
	found := map[page]map[string][]time.Duration{}
	for range b.rounds {
		out, err := b.command(b.dir, args...)
		if err != nil {
			return err
		}
		for _, m := range read.FindAllStringSubmatch(out, -1) {
			ns, err := strconv.ParseFloat(m[4], 64)
			if err != nil {
				return fmt.Errorf("%q: %w", m[0], err)
			}
			p := page{m[2], m[3]}
			if found[p] == nil {
				found[p] = map[string][]time.Duration{}
			}
			found[p][m[1]] = append(found[p][m[1]], time.Duration(ns))
		}
	}
	t := table{
		title: "Pages read from SQLite",
		text: fmt.Sprintf("Microseconds in which the store reads 20 pets (`go test -bench ListPets ./internal/sqlite -long` in `reference/`). Medians of %d rounds. "+
			"Without -long there is no database of a million.", b.rounds),
		section: "pages",
		columns: []string{"page", "of 100 pets", "of a million pets", "ratio"},
	}
	for _, kind := range []struct {
		name string
		page page
	}{
		{"the first page", page{"", "first"}},
		{"the first page of those sold", page{"sold", "first"}},
		{"a page anywhere", page{"", "random"}},
		{"a page anywhere of those sold", page{"sold", "random"}},
	} {
		few, many := found[kind.page]["100"], found[kind.page]["1000000"]
		if len(few) != b.rounds || b.long && len(many) != b.rounds {
			return fmt.Errorf("BenchmarkListPets printed %d and %d results for %s in %d rounds", len(few), len(many), kind.name, b.rounds)
		}
		if len(many) == 0 {
			t.rows = append(t.rows, []string{kind.name, micros(median(few)), "", ""})
			continue
		}
		ratio := float64(median(many)) / float64(median(few))
		t.rows = append(t.rows, []string{kind.name, micros(median(few)), micros(median(many)), fmt.Sprintf("%.2f", ratio)})
	}
	b.tables = append(b.tables, t)
	return nil
}
