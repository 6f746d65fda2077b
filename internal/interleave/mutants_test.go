package interleave

import (
	"bytes"
	"maps"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// mutants are mistakes in package memory, each of which a case must find.
var mutants = []struct {
	name, old, new string
	finds          string // a case
}{
	{
		name:  "a change that puts no new version into the meter",
		old:   "(old+versionUnit)&versionMask",
		new:   "old&versionMask",
		finds: "a reset, and a new subject in its slot",
	},
	{
		name:  "a charge that does not look again at the hash of the slot it found",
		old:   "m.has(checkRecord) || slot.hash() != h",
		new:   "m.has(checkRecord)",
		finds: "a reset of the subject in front",
	},
	{
		name:  "a charge that ignores the flag of the record",
		old:   "m.has(checkRecord) || slot.hash() != h",
		new:   "slot.hash() != h",
		finds: "a ban beside a take",
	},
	{
		name:  "a charge in two steps",
		old:   "return atomic.CompareAndSwapUint64(&s[meterWord], uint64(old), uint64(m))",
		new:   "if s.meter() != old { return false }; s.setMeter(m); return true",
		finds: "two takes, one unit left",
	},
	{
		name:  "a charge that keeps the other windows of a try that failed",
		old:   "if windows > quotas {\n\t\t\tclear(d.Receipt.Others[:])",
		new:   "if windows > quotas {",
		finds: "a take with a window of another plan beside a reset",
	},
	{
		name:  "a slot that is not frozen when its table grows",
		old:   "m := from.freeze()",
		new:   "m := from.meter()",
		finds: "a table that grows",
	},
	{
		name:  "a slot that is not frozen when it moves",
		old:   "m := s.freeze()\n\told := to.freeze()",
		new:   "m := s.meter()\n\told := to.freeze()",
		finds: "a reset of the subject in front",
	},
	{
		name:  "a group that does not hold its first slot",
		old:   "*hold, after = m, m.held()",
		new:   "*hold, after = m, m",
		finds: "a group beside takes of both subjects by one caller",
	},
	{
		name:  "a group that charges its first slot before the last",
		old:   "*hold, after = m, m.held()",
		new:   "*hold = m",
		finds: "three subjects, the last of which has one unit left",
	},
	{
		name:  "a holder of the lock that does not wait for a group",
		old:   "if !m.isHeld() {",
		new:   "if !m.isHeld() || true {",
		finds: "a group beside a ban and an unban",
	},
	{
		name:  "a group that locks in the order of its charges",
		old:   "if n := int(group[i].hash >> l.shift); n > last && n < next {",
		new:   "if n := int(group[i].hash >> l.shift); next == len(l.segments) && (last < 0 || i > 0 && last == int(group[i-1].hash>>l.shift)) {",
		finds: "groups of subjects with locks of their own",
	},
	{
		name:  "a refused group that does not look at all of its subjects again",
		old:   "if group[i].slot().meter() != group[i].meter {",
		new:   "if i < 0 {",
		finds: "a group that is refused within the grace beside takes of both subjects",
	},
	{
		name:  "a charge of a smooth quota that does not hold its slot",
		old:   "if !slot.swap(m, m.held()) {",
		new:   "if slot.meter() != m {",
		finds: "two takes of a smooth quota, one unit left",
	},
	{
		name:  "a bucket that is written when its slot is not held any more",
		old:   "slot.setMeter(layout.charge(slot, m, d))",
		new:   "slot.setMeter(m.charged(d.Cost).after(m)); layout.charge(slot, m, d)",
		finds: "two takes of a smooth quota, one unit left",
	},
	{
		name:  "a charge of a smooth quota that does not look at the hash",
		old:   "slot.hash() != h || m.has(checkRecord)",
		new:   "m.has(checkRecord)",
		finds: "a reset of the subject in front of two with smooth quotas",
	},
	{
		name:  "a charge of a smooth quota that ignores the flag of the record",
		old:   "slot.hash() != h || m.has(checkRecord)",
		new:   "slot.hash() != h",
		finds: "a ban beside takes of a smooth quota",
	},
	{
		name:  "a peek that does not look at the meter again",
		old:   "for slot.meter() != s.meter {",
		new:   "for false {",
		finds: "peeks beside a take of smooth quotas",
	},
	{
		name:  "a sweep that does not look again at what it drops",
		old:   "if s.expiry(slot, m)+keepExpired > now { //",
		new:   "if false { //",
		finds: "a subject with a full bucket, which new ones sweep away beside a take",
	},
	{
		name:  "an eviction that does not look again at what had expired",
		old:   " || v.expired && s.expiry(slot, m) > now",
		new:   "",
		finds: "a new subject at the bound, beside a take of one with a full bucket",
	},
	{
		name:  "a search for room that passes over a slot that is held",
		old:   "m := slot.settled()",
		new:   "m := slot.meter()",
		finds: "a new subject at the bound, beside a take of one with a full bucket",
	},
	{
		name:  "a group that does not write its buckets",
		old:   "m.meter = l.layouts.get(m.meter.layout()).charge(m.slot(), m.meter, d)",
		new:   "m.meter = m.meter.charged(d.Cost)",
		finds: "a group beside takes of smooth quotas by one caller",
	},
}

func TestFindsMutants(t *testing.T) {
	testenv.Long(t, "builds the engine once for each mutant")
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			files := sources(t, *folder)
			mutated := 0
			for name, text := range maps.Clone(files) {
				mutated += bytes.Count(text, []byte(m.old))
				files[name] = bytes.ReplaceAll(text, []byte(m.old), []byte(m.new))
			}
			if mutated != 1 {
				t.Fatalf("package memory has %d times the text\n\t%s\nwhich this mutant replaces, want once.\n"+
					"Update the mutant in mutants_test.go to the text that now does this.", mutated, m.old)
			}
			if out, failed := run(t, build(t, files), m.finds); !failed {
				t.Errorf("the case %q finds nothing: %s", m.finds, out)
			} else {
				t.Log(out)
			}
		})
	}
}
