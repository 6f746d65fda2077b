//go:build unix

// Package faults tests what package redislimit promises, alone and behind package
// failover, against real Redis servers. It kills, stops, empties, replaces, cuts off,
// slows down or fills a server while 64 callers use it. docs/FAULTS.md has the results.
// This command rewrites them:
//
//	go generate ./ratelimit/redislimit/internal/faults
package faults

import (
	"flag"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/animalstore/gatehouse/internal/testenv"
)

//go:generate go test -count 1 . -write ../../../../docs/FAULTS.md

var write = flag.String("write", "", "a document in which the tables are renewed; relative to the package's folder")

func TestMain(m *testing.M) {
	logging.Disable() // the client's, of servers that a test has killed
	os.Exit(m.Run())
}

// Each fault meets each arrangement, or one of them in a short run, on servers of their own. Unless latencies
// are written, faults come beside each other: most of a run is spent waiting.
func TestFaults(t *testing.T) {
	var rep report
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			if *write == "" {
				t.Parallel()
			}
			sec := section{scenario: s}
			for k, a := range arrangements {
				t.Run(a.name, func(t *testing.T) {
					if *write == "" && k != (i+1)%len(arrangements) {
						testenv.Long(t, "each fault meets each arrangement")
					}
					r := newRun(t, s, a)
					o := r.play()
					t.Log(o.String())
					if *write != "" {
						sec.rows = append(sec.rows, row{a, o})
						rep.redis = r.version()
					}
				})
			}
			if *write != "" {
				rep.sections = append(rep.sections, sec)
			}
		})
	}
	if *write != "" && !t.Failed() {
		if err := rep.renew(*write); err != nil {
			t.Error(err)
		}
	}
}
