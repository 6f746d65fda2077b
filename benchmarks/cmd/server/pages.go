package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"time"
)

// A pageKind is a page that a client can ask for.
type pageKind struct {
	name   string
	path   string
	cursor bool // begin anywhere in the list
	filter byte // for the cursor
}

var pageKinds = []pageKind{
	{name: "the first page", path: "/v1/pets"},
	{name: "the first page of those sold", path: "/v1/pets?status=sold"},
	{name: "a page anywhere", path: "/v1/pets?cursor=", cursor: true},
	{name: "a page anywhere of those sold", path: "/v1/pets?status=sold&cursor=", cursor: true, filter: 3},
}

// measurePages compares the processor time of pages in small and large databases.
func measurePages(b *bench) error {
	sizes := []int{100, b.size(1_000_000, 100_000, 2000)}
	costs := make([][]time.Duration, len(pageKinds))
	for _, pets := range sizes {
		s, err := b.filledPetstore(pets)
		if err != nil {
			return err
		}
		for i, kind := range pageKinds {
			cost, err := b.pageCost(s, kind, pets)
			if err != nil {
				return fmt.Errorf("%s of %d pets: %w", kind.name, pets, err)
			}
			costs[i] = append(costs[i], cost)
		}
		if err := s.stop(); err != nil {
			return err
		}
	}
	t := table{
		title: "Pages of many pets",
		text: fmt.Sprintf("Microseconds of processor time of the server for `GET /v1/pets` with 20 pets, on %d connections. "+
			"Medians of %d rounds of %v each. A page anywhere begins after any pet of the list, so that with many pets hardly two requests "+
			"ask for the same page, while with few the server has kept all of them.", connections, b.rounds, b.duration),
		columns: []string{"page"},
	}
	for _, pets := range sizes {
		t.columns = append(t.columns, fmt.Sprintf("of %d pets", pets))
	}
	t.columns = append(t.columns, "most to fewest")
	for i, kind := range pageKinds {
		cells := []string{kind.name}
		for _, cost := range costs[i] {
			cells = append(cells, micros(cost))
		}
		ratio := float64(costs[i][len(sizes)-1]) / float64(costs[i][0])
		cells = append(cells, fmt.Sprintf("%.2f", ratio))
		t.rows = append(t.rows, cells)
	}
	b.tables = append(b.tables, t)
	return nil
}

// filledPetstore starts a server with a number of pets.
func (b *bench) filledPetstore(pets int) (*petstore, error) {
	dir, err := b.newDir("")
	if err != nil {
		return nil, err
	}
	key, err := b.newKey(dir, "ann", roomy)
	if err != nil {
		return nil, err
	}
	if err := fill(b.ctx, dir, pets, 0); err != nil {
		return nil, err
	}
	return b.startPetstore(dir, key)
}

// pageCost returns the median of the processor time of a page.
func (b *bench) pageCost(s *petstore, kind pageKind, pets int) (time.Duration, error) {
	l := load{address: s.api, request: get(kind.path, s.key), duration: b.duration}
	if kind.cursor {
		l.request.path += cursor(kind.filter, 1)
		at := bytes.Index(l.request.bytes(s.api), []byte("cursor=")) + len("cursor=")
		// At least one page of those sold, every tenth of them, follows.
		most := max(pets-20*10, 1)
		l.vary = func(request []byte, _ int) { copy(request[at:], cursor(kind.filter, 1+rand.Int64N(int64(most)))) }
	}
	var costs []time.Duration
	for range b.rounds {
		before, err := s.processorTime()
		if err != nil {
			return 0, err
		}
		took, err := l.run(b.ctx)
		if err != nil {
			return 0, err
		}
		after, err := s.processorTime()
		if err != nil {
			return 0, err
		}
		costs = append(costs, (after-before)/time.Duration(len(took)))
		if err := s.emptyLog(); err != nil {
			return 0, err
		}
	}
	return median(costs), nil
}

// cursor returns the cursor of the page after a pet, as package api of the server
// encodes it.
func cursor(filter byte, after int64) string {
	b := binary.BigEndian.AppendUint64([]byte{1, filter}, uint64(after))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}
