package main

import (
	"bytes"
	"fmt"
	"time"
)

// measureStart measures the time from the start of the program to its first answer, with
// less and more in its files.
func measureStart(b *bench) error {
	pets, keys, subjects := b.size(1_000_000, 100_000, 1000), b.size(100_000, 10_000, 100), b.size(1_000_000, 100_000, 1000)
	dir, err := b.newDir(manyNetworks)
	if err != nil {
		return err
	}
	key, err := b.newKey(dir, "ann", roomy)
	if err != nil {
		return err
	}
	t := table{
		title: "Start",
		text: fmt.Sprintf("From the start of the program to the first pets that it returns, and from SIGINT to its end. The files are in the cache of the "+
			"operating system. Seconds, medians of %d starts.", b.rounds),
		columns: []string{"in the files", "start", "stop"},
	}
	add := func(name string) error {
		up, down, err := b.startTimes(dir, key)
		if err != nil {
			return err
		}
		t.rows = append(t.rows, []string{name, seconds(up), seconds(down)})
		return nil
	}
	if err := add("one key"); err != nil {
		return err
	}
	if err := fill(b.ctx, dir, pets, keys); err != nil {
		return err
	}
	if err := add(fmt.Sprintf("%d pets, %d keys", pets, keys)); err != nil {
		return err
	}
	s, err := b.startPetstore(dir, key)
	if err != nil {
		return err
	}
	if err := s.addSubjects(subjects); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	if err := add(fmt.Sprintf("the same, and %d subjects", subjects)); err != nil {
		return err
	}
	b.tables = append(b.tables, t)
	return nil
}

// startTimes returns how long the server in a directory takes to start and to stop.
func (b *bench) startTimes(dir, key string) (up, down time.Duration, err error) {
	var ups, downs []time.Duration
	for range b.rounds {
		begun := time.Now()
		s, err := b.startPetstore(dir, key)
		if err != nil {
			return 0, 0, err
		}
		if _, _, err := exchange(s.api, get("/v1/pets", key)); err != nil {
			return 0, 0, err
		}
		ups = append(ups, time.Since(begun))
		begun = time.Now()
		if err := s.stop(); err != nil {
			return 0, 0, err
		}
		downs = append(downs, time.Since(begun))
	}
	return median(ups), median(downs), nil
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

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }
