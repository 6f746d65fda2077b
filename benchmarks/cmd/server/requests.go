package main

import (
	"fmt"
	"slices"
	"time"
)

// A row is a request of the table of throughput.
type row struct {
	name string
	request
}

// rows returns the requests to measure, all of which have been sent once.
func (s *petstore) rows() ([]row, error) {
	limited, err := s.bench.newKey(s.dir, "bob", "1/8784h")
	if err != nil {
		return nil, err
	}
	banned, err := s.bench.newKey(s.dir, "eve", roomy)
	if err != nil {
		return nil, err
	}
	if err := s.command("bans", "ban", "eve", "--for", "12h"); err != nil {
		return nil, err
	}
	if _, _, err := exchange(s.api, get("/v1/pets", limited)); err != nil { // its only request
		return nil, err
	}
	page, _, err := exchange(s.api, get("/v1/pets", s.key))
	if err != nil {
		return nil, err
	}
	return []row{
		{"20 pets", get("/v1/pets", s.key)},
		{"20 pets, not modified (304)", get("/v1/pets", s.key, field{"If-None-Match", page.Header.Get("Etag")}).answered(304)},
		{"one pet", get("/v1/pets/7", s.key)},
		{"100 pets", get("/v1/pets?limit=100", s.key)},
		{"100 pets, gzip", get("/v1/pets?limit=100", s.key, field{"Accept-Encoding", "gzip"})},
		{"without a key (401)", get("/v1/pets", "").answered(401)},
		{"over the limit (429)", get("/v1/pets", limited).answered(429)},
		{"banned (429)", get("/v1/pets", banned).answered(429)},
		{"a new pet (201)", post(s.key)}, // last, since it changes what the others return
	}, nil
}

// compared are the measurements of one row.
type compared struct {
	petstore, bare []float64         // requests a second
	cost           [][]time.Duration // processor time of petstore, the bare server and what petstore uses; of the rounds
	ratio          []float64         // of the rounds
}

func measureRequests(b *bench) error {
	s, err := b.newPetstore(roomyNetworks)
	if err != nil {
		return err
	}
	return b.compare(s, table{
		title: "Requests a second",
		text: fmt.Sprintf("wrk with %d keep-alive connections and one thread sends one request all the time, in turn to petstore and to the bare server. "+
			"Medians of %d rounds of %v each. The ratio is the median of the rounds' ratios.", connections, b.rounds, b.duration),
	})
}

// compare measures all rows on a server, and adds the table, which also has the processor
// time of processes that the server uses.
func (b *bench) compare(s *petstore, t table, used ...*process) error {
	if err := s.addPets(200); err != nil {
		return err
	}
	rows, err := s.rows()
	if err != nil {
		return err
	}
	var answers []answer
	var raws [][]byte
	for _, r := range rows {
		a, raw, err := exchange(s.api, r.request)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		answers, raws = append(answers, a), append(raws, raw)
	}
	bare, err := b.startBare(answers)
	if err != nil {
		return err
	}
	t.columns = []string{"request", "petstore, requests/s", "bare, requests/s", "ratio", "petstore, µs of processor", "bare, µs of processor"}
	for _, p := range used {
		t.columns = append(t.columns, p.name+", µs of processor")
	}
	for i, r := range rows {
		_, raw, err := exchange(bare.addresses[i], r.request)
		if err != nil {
			return err
		}
		if err := checkSame(r.request, raws[i], raw); err != nil {
			return err
		}
		c, err := b.compareRow(s, bare, bare.addresses[i], r, used)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		ratio := median(c.ratio)
		cells := []string{r.name, fmt.Sprintf("%.0f", median(c.petstore)), fmt.Sprintf("%.0f", median(c.bare)), fmt.Sprintf("%.2f", ratio)}
		for _, cost := range c.cost {
			cells = append(cells, micros(median(cost)))
		}
		t.rows = append(t.rows, cells)
	}
	b.tables = append(b.tables, t)
	return s.stop()
}

// compareRow measures one row in rounds, of which every second begins with the other
// server.
func (b *bench) compareRow(s *petstore, bare *bareServers, bareAddress string, r row, used []*process) (compared, error) {
	c := compared{cost: make([][]time.Duration, 2+len(used))}
	for round := range b.rounds {
		var ours, theirs rate
		var err error
		for turn := range 2 {
			if (round+turn)%2 == 0 {
				theirs, err = b.measureRate(bare.process, bareAddress, r.request, b.duration)
			} else {
				ours, err = b.measureRate(s.process, s.api, r.request, b.duration, used...)
			}
			if err != nil {
				return c, err
			}
		}
		c.petstore, c.bare = append(c.petstore, ours.perS), append(c.bare, theirs.perS)
		for i, cost := range slices.Concat(ours.cost[:1], theirs.cost, ours.cost[1:]) {
			c.cost[i] = append(c.cost[i], cost)
		}
		c.ratio = append(c.ratio, ours.perS/theirs.perS)
		if err := s.emptyLog(); err != nil {
			return c, err
		}
	}
	return c, nil
}
