package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

var petsPerS = regexp.MustCompile(`callers=(1|64)\S*\s.*?([0-9.e+]+) pets/s`)

// measureDurable compares pets that share a transaction, and so the wait for the disk, with
// pets that have one each.
func measureDurable(b *bench) error {
	syncs, err := b.syncsPerS()
	if err != nil {
		return err
	}
	binary, err := b.testBinary("./internal/sqlite")
	if err != nil {
		return err
	}
	disks := []disk{{"on this disk", nil}}
	if _, err := exec.LookPath("strace"); err == nil {
		disks = append(disks, disk{"on a disk whose syncs take 1 ms longer", []string{"strace", "-f", "-qq", "--seccomp-bpf", "-o", os.DevNull,
			"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=1000"}})
	} else if b.long || os.Getenv("GATEHOUSE_REQUIRE_SERVERS") == "1" {
		return errors.New("strace must be on this machine, to imitate a slower disk")
	} else {
		fmt.Fprintln(os.Stderr, "without a slower disk, which strace would imitate:", err)
	}
	t := table{
		title: "Durable pets",
		text: fmt.Sprintf("Pets a second that callers of the SQLite store create, each of which is on the disk before it is acknowledged. "+
			"One caller has a transaction for each pet, 64 share them "+
			"(`go test -bench CreatePet ./internal/sqlite` in `reference/`). This disk does %.0f fsyncs a second, one after the other, "+
			"each after 4 KiB were written: %s ms each. Where a sync takes less than about half a millisecond, the processors are the limit. "+
			"The slower disk is imitated by strace, which delays each sync. Medians of %d rounds.",
			syncs, millis(time.Duration(float64(time.Second)/syncs)), b.rounds),
		columns: []string{"pets", "a second", "ratio"},
	}
	for _, d := range disks {
		group, each, err := b.petsPerS(binary, d)
		if err != nil {
			return err
		}
		var ratios []float64
		for i := range group {
			ratios = append(ratios, group[i]/each[i])
		}
		t.rows = append(t.rows,
			[]string{"one caller, " + d.name, fmt.Sprintf("%.0f", median(each)), "1"},
			[]string{"64 callers, " + d.name, fmt.Sprintf("%.0f", median(group)), fmt.Sprintf("%.1f", median(ratios))})
	}
	b.tables = append(b.tables, t)
	return nil
}

// A disk is one to measure, and the command under which programs see it.
type disk struct {
	name    string
	command []string
}

// petsPerS returns how many pets a second the store creates, in each round.
func (b *bench) petsPerS(binary string, d disk) (group, each []float64, err error) {
	found := map[string][]float64{}
	for range b.rounds {
		out, err := b.command(b.dir, append(append([]string{"env", "TMPDIR=" + b.dir}, d.command...), binary, "-test.run", "^$",
			"-test.bench", "^BenchmarkCreatePet$/^callers=(1|64)$", "-test.benchtime", b.duration.String())...)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range petsPerS.FindAllStringSubmatch(out, -1) {
			v, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, nil, fmt.Errorf("%q: %w", m[0], err)
			}
			found[m[1]] = append(found[m[1]], v)
		}
	}
	group, each = found["64"], found["1"]
	if len(group) != b.rounds || len(each) != b.rounds {
		return nil, nil, fmt.Errorf("BenchmarkCreatePet printed %d and %d results in %d rounds", len(group), len(each), b.rounds)
	}
	return group, each, nil
}

// syncsPerS returns how many times a second the disk can write 4 KiB and sync them.
func (b *bench) syncsPerS() (float64, error) {
	f, err := os.Create(filepath.Join(b.dir, "syncs"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block := make([]byte, 4096)
	begun := time.Now()
	for n := 1; ; n++ {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		if took := time.Since(begun); took >= b.duration {
			return float64(n) / took.Seconds(), nil
		}
	}
}
