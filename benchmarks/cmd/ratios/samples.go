package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Samples are what benchmarks printed.
type samples struct {
	header map[string]string // "cpu", "goos" and the like
	values map[series][]float64
}

// A series is one unit of one benchmark.
type series struct {
	name string // without "Benchmark" and the number of processors
	cpus int
	unit string
}

var cpus = regexp.MustCompile(`-(\d+)$`)

// parse reads the output of go test -bench.
func parse(r io.Reader) (*samples, error) {
	s := &samples{header: map[string]string{}, values: map[series][]float64{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 4 && strings.HasPrefix(fields[0], "Benchmark"):
			if err := s.add(fields); err != nil {
				return nil, err
			}
		case len(fields) > 1 && strings.HasSuffix(fields[0], ":"):
			s.header[strings.TrimSuffix(fields[0], ":")] = strings.Join(fields[1:], " ")
		}
	}
	return s, lines.Err()
}

// add takes in a result: a name, the number of iterations, and values with units.
func (s *samples) add(fields []string) error {
	name, n := strings.TrimPrefix(fields[0], "Benchmark"), 1
	if suffix := cpus.FindStringSubmatch(name); suffix != nil {
		name = strings.TrimSuffix(name, suffix[0])
		n, _ = strconv.Atoi(suffix[1])
	}
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return fmt.Errorf("%s: %w", fields[0], err)
		}
		key := series{name, n, fields[i+1]}
		s.values[key] = append(s.values[key], v)
	}
	return nil
}

// median returns the median of a series, and whether there is one.
func (s *samples) median(name string, cpus int, unit string) (float64, bool) {
	v := slices.Sorted(slices.Values(s.values[series{name, cpus, unit}]))
	switch n := len(v); {
	case n == 0:
		return 0, false
	case n%2 == 1:
		return v[n/2], true
	default:
		return (v[n/2-1] + v[n/2]) / 2, true
	}
}

// least returns the least of a series, and whether there is one.
func (s *samples) least(name string, cpus int, unit string) (float64, bool) {
	v := s.values[series{name, cpus, unit}]
	if len(v) == 0 {
		return 0, false
	}
	return slices.Min(v), true
}

// rounds returns how many values the longest series has.
func (s *samples) rounds() (n int) {
	for _, v := range s.values {
		n = max(n, len(v))
	}
	return n
}
