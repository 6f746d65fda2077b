package main

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

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
		columns: []string{"page", "of 100 pets", "of a million pets", "ratio", "goal", ""},
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
			t.rows = append(t.rows, []string{kind.name, micros(median(few)), "", "", "", ""})
			continue
		}
		ratio := float64(median(many)) / float64(median(few))
		t.rows = append(t.rows, append([]string{kind.name, micros(median(few)), micros(median(many)), fmt.Sprintf("%.2f", ratio)}, notOver(pagesGoal, ratio)...))
	}
	b.tables = append(b.tables, t)
	return nil
}
