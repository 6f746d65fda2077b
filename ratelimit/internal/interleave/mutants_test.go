package interleave

import (
	"bytes"
	"maps"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// A mutant is a mistake in package memory that a case must find.
type mutant struct {
	name     string
	old, new string // text
	finds    string // the case
}

var mutants = []mutant{
	{"a change that puts no new version into the meter",
		"(old+versionUnit)&versionMask", "old&versionMask",
		"a reset, and a new subject in its slot"},
	{"a charge that does not look again at the hash of the slot it found",
		"m.conduct() >= checkConduct || slot.hash() != h", "m.conduct() >= checkConduct",
		"a reset of the subject in front"},
	{"a charge that ignores the flag of the conduct",
		"m.conduct() >= checkConduct || slot.hash() != h", "slot.hash() != h",
		"strikes beside a refund, a ban and an unban"},
	{"a charge in two steps",
		"return atomic.CompareAndSwapUint64(&s[meterWord], uint64(old), uint64(m))", "if s.meter() != old { return false }; s.setMeter(m); return true",
		"two takes, one unit left"},
	{"a charge that keeps the other windows of a try that failed",
		"if hasOthers {\n\t\t\tclear(d.Receipt.Others[:])", "if hasOthers {",
		"a take with a window of another plan beside a reset"},
	{"a first request of a window that does not hold its slot",
		"if !slot.swap(m, m.withPending()) {\n\t\treturn false", "if slot.meter() != m {\n\t\treturn false",
		"two first requests of a window"},
	{"a first request of a window that does not look at the hash",
		"slot.hash() != h || m.conduct() != noConduct", "m.conduct() != noConduct",
		"a first request of a window beside a reset, and a new subject in its slot"},
	{"a slot that is not frozen when its table grows",
		"m := from.freeze()", "m := from.meter()",
		"a table that grows"},
	{"a slot that is not frozen when it moves",
		"m := s.freeze()\n\told := to.freeze()", "m := s.meter()\n\told := to.freeze()",
		"a reset of the subject in front"},
	{"a group that does not hold its first slot",
		"joint.meter, after = m, m.withPending()", "joint.meter, after = m, m",
		"a group beside takes of both subjects by one caller"},
	{"a group that charges its first slot before the last",
		"joint.meter, after = m, m.withPending()", "joint.meter = m",
		"three subjects, the last of which has one unit left"},
	{"a ban that freezes its slot after it wrote the conduct",
		"\ts.freeze()\n\tdefer s.unfreeze()\n\tif err := s.putConduct(c, dirty); err != nil {\n\t\treturn err\n\t}",
		"\tif err := s.putConduct(c, dirty); err != nil {\n\t\treturn err\n\t}\n\ts.freeze()\n\tdefer s.unfreeze()",
		"a ban beside a request that is refused, and one that is not"},
	{"a ban without an account that does not look again at the moves",
		"slot.meter() == m && t.moves.Load() == moves", "slot.meter() == m && moves == moves",
		"a banned subject behind two that are reset"},
	{"a ban without an account that does not look again at the conduct",
		"!found && slot.meter() == m && ", "!found && ",
		"a take of a new subject beside a charge, a ban and a reset"},
	{"a ban without an account that does not look again for the account",
		"return !found && slot.meter() == m", "return (!found || true) && slot.meter() == m",
		"a take of a new subject beside a charge, a ban and a reset"},
	{"a reset that drops the account first",
		"s.drop(conductHash(s.hash)) // first: a ban is in force without an account too\n\ts.drop(s.hash)", "s.drop(s.hash)\n\ts.drop(conductHash(s.hash))",
		"a ban beside a reset"},
	{"a slot that moves before that is counted",
		"s.copyTo(t.slot(i))\n\t\tt.moves.Add(1)", "t.moves.Add(1); s.copyTo(t.slot(i))",
		"a banned subject behind two that are reset"},
	{"a holder of the lock that does not wait for a group",
		"if !m.isPending() {", "if !m.isPending() || true {",
		"a group beside a ban and an unban"},
	{"a group that locks in the order of its charges",
		"slices.Sort(segments)", "_ = 0",
		"groups of subjects with locks of their own"},
	{"a refused group that does not look at all of its subjects again",
		"if group[i].slot().meter() != group[i].meter {", "if i < 0 {",
		"a group that is refused within the grace beside takes of both subjects"},
	{"a charge of a smooth quota that does not hold its slot",
		"if !slot.swap(m, m.withPending()) {\n\t\t\tcontinue", "if slot.meter() != m {\n\t\t\tcontinue",
		"two takes of a smooth quota, one unit left"},
	{"a bucket that is written when its slot is not frozen any more",
		"slot.setMeter(layout.endCharge(slot, m, d))", "slot.setMeter(m.charged(d.Cost).after(m)); layout.endCharge(slot, m, d)",
		"two takes of a smooth quota, one unit left"},
	{"a charge of a smooth quota that does not look at the hash",
		"slot.hash() != h || m.conduct() >= checkConduct", "m.conduct() >= checkConduct",
		"a reset of the subject in front of two with smooth quotas"},
	{"a charge of a smooth quota that ignores the flag of the conduct",
		"slot.hash() != h || m.conduct() >= checkConduct", "slot.hash() != h",
		"a strike of a smooth quota beside a refund"},
	{"a sweep that does not look again at what it drops",
		"if s.expiry(slot, m).add(keepExpired) > now { //", "if false { //",
		"a subject with a full bucket, which new ones sweep away beside a take"},
	{"an eviction that does not look again at what had expired",
		" || v.expired && s.expiry(slot, m) > now", "",
		"a new subject at the bound, beside a take of one with a full bucket"},
	{"a search for room that passes over a slot that is kept",
		"m := slot.settled()", "m := slot.meter()",
		"a new subject at the bound, beside a take of one with a full bucket"},
	{"a group that does not write its buckets",
		"after = l.layouts.get(m.meter.layout()).endCharge(m.slot(), m.meter, d)", "after = m.meter.charged(d.Cost)",
		"a group beside takes of smooth quotas by one caller"},
}

// source returns package memory with the mistake.
func (m mutant) source(t *testing.T) map[string][]byte {
	t.Helper()
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
	return files
}

// What TestFindsMutants runs only with -long is checked by each run, so that a change of
// the engine shows immediately which mutant it outdates.
func TestMutantsAreUpToDate(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) { m.source(t) })
	}
}

func TestFindsMutants(t *testing.T) {
	testenv.Long(t, "builds the engine once for each mutant")
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if out, failed := run(t, build(t, m.source(t)), m.finds); !failed {
				t.Errorf("the case %q finds nothing: %s", m.finds, out)
			} else {
				t.Log(out)
			}
		})
	}
}
