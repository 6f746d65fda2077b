package memory

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

var testSecret = []byte("a secret that every run shares..")

// The account has the end of a ban too. It loses it with the conduct.
func TestLoadEndsABan(t *testing.T) {
	l := newLimiter(t, Options{})
	take(t, l, "a", statePlan)
	var file []Record
	for _, do := range []func() error{
		func() error { return l.Ban(ctx, "a", time.Hour, "strikes") },
		func() error { _, err := l.Unban(ctx, "a"); return err },
	} {
		err := errors.Join(do(), l.Save(func(r []Record) error { file = append(file, r...); return nil }))
		must(t, err)
	}
	if d := take(t, restart(t, l, file), "a", statePlan); !d.Allowed() {
		t.Errorf("got %v, want allowed: the ban was ended", d.Outcome)
	}
}

// savedBan returns the records of a subject that is banned.
func savedBan(t testing.TB, opts Options) (account, record Record) {
	t.Helper()
	l := newLimiter(t, opts)
	take(t, l, "subject", statePlan)
	must(t, l.Ban(ctx, "subject", time.Hour, ""))
	d := disk{}
	save(t, l, d)
	for key, r := range d {
		if key%2 == 0 {
			account = r
		} else {
			record = r
		}
	}
	return account, record
}

// withData returns a record with other data: a kind, and what follows the bytes that the
// secret makes.
func withData(r Record, data []byte) Record {
	r.Data = slices.Concat(data[:1], r.Data[1:3], data[1:])
	return r
}

// State means nothing to an engine with another secret, which must not list its bans.
func TestLoadRefusesAnotherSecret(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	account, record := savedBan(t, Options{Now: clock.Now, Secret: testSecret})
	for name, r := range map[string]Record{"usage": account, "a ban": record} {
		l := newLimiter(t, Options{Now: clock.Now, Secret: []byte("a secret that is not the same...")})
		if err := l.Load([]Record{r}); err == nil || !strings.Contains(err.Error(), "Options.Secret") {
			t.Errorf("%s that another secret saved: error %v, want one that names Options.Secret", name, err)
		}
		if bans, err := l.Bans(ctx); err != nil || len(bans) > 0 || l.Stats().Subjects > 0 {
			t.Errorf("%s that another secret saved: bans %v, %v, and %d subjects, want none", name, bans, err, l.Stats().Subjects)
		}
	}
}

func TestLoadRefusesDamage(t *testing.T) {
	opts := Options{Now: ratelimittest.NewClock(noon).Now, Secret: testSecret}
	account, record := savedBan(t, opts)
	for name, data := range map[string][]byte{
		"an unknown kind":     {9, 1, 2, 3},
		"no windows":          {5},
		"a window cut short":  {5, 120, 2, 2},
		"a window of nothing": {5, 0, 2, 2, 2},
		"a limit of nothing":  {5, 120, 0, 2, 2},
		"a negative usage":    {5, 120, 2, 1, 2},
		"two equal windows":   {5, 120, 2, 2, 2, 120, 2, 2, 2},
		"more than the most":  {5, 120, 2, 128, 128, 128, 128, 128, 128, 128, 32, 2},
		"a time before 1970":  {5, 119, 2, 2, 0},
		"a negative end":      {5, 120, 2, 2, 1},
		"rounded up by more":  {5, 119, 2, 128, 128, 128, 128, 32, 2}, // than a second
		"a record's data":     {6, 2, 0, 2, 2, 0, 2, 2},
	} {
		l := newLimiter(t, opts)
		if err := l.Load([]Record{withData(account, data)}); err == nil {
			t.Errorf("%s was loaded", name)
		}
		if kept := l.Stats().Subjects; kept != 0 {
			t.Errorf("%s left %d subjects", name, kept)
		}
	}
	text := slices.Clip(append(binary.AppendVarint([]byte{6, 0, 0, 0, 2, 0}, int64(byHandWithText)<<banLengthBits|1), 2))
	for name, data := range map[string][]byte{
		"no reason":                 text,
		"a reason cut short":        append(text, 4, 'a'),
		"a reason of less than 0":   append(text, 1, 'a'),
		"a long reason":             slices.Concat(text, binary.AppendVarint(nil, 201), make([]byte, 201)),
		"a record cut short":        {6, 0, 0, 0},
		"a record of nonsense":      {6, 1, 1, 1, 1, 1, 1, 1},
		"strikes beside a ban":      {6, 2, 2, 2, 2, 2, 2, 2},
		"a cause without a ban":     append(binary.AppendVarint([]byte{6, 0, 0, 0, 2, 0}, int64(byHand)<<banLengthBits), 2),
		"a ban out of range":        append(binary.AppendVarint([]byte{6, 0, 0, 0, 2, 0}, 1<<32|1), 2),
		"a cause of no meaning":     append(binary.AppendVarint([]byte{6, 0, 0, 0, 2, 0}, 1<<banLengthBits|1), 2),
		"decay without strikes":     {6, 0, 0, 2, 2, 2, 0, 2},
		"an account's data":         {5, 120, 2, 2, 2},
		"an expiry out of range":    {6, 2, 0, 2, 2, 0, 2, 255, 255, 255, 255, 255, 15},
		"a record of older version": {2, 0, 0, 0, 0, 0, 0},
	} {
		l := newLimiter(t, opts)
		if err := l.Load([]Record{withData(record, data)}); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
	l := newLimiter(t, opts)
	if err := l.Load([]Record{{Key: 77, Data: []byte{9}, Expires: noon.Unix() - 60}, {Key: 78}}); err != nil {
		t.Errorf("what has expired or is gone is passed over, got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	opts := Options{Now: func() time.Time { return noon }, MaxSubjects: 4, Secret: testSecret}
	account, record := savedBan(f, opts)
	for _, r := range []Record{account, record} {
		f.Add(slices.Concat(r.Data[:1], r.Data[3:]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		l, r := newLimiter(t, opts), account
		if data[0] == record.Data[0] {
			r = record
		}
		r.Expires = noon.Unix() + 1
		if err := l.Load([]Record{withData(r, data)}); err != nil {
			return
		}
		// What was taken in is saved as it came, but for the spelling of numbers.
		var first, second []byte
		_ = l.Save(func(r []Record) error { first = r[0].Data; return nil })
		again := newLimiter(t, opts)
		r.Data = first
		if err := again.Load([]Record{r}); err != nil {
			t.Fatalf("%x was loaded and saved as %x, which is refused: %v", data, first, err)
		}
		_ = again.Save(func(r []Record) error { second = r[0].Data; return nil })
		if string(first) != string(second) {
			t.Errorf("%x was saved as %x and then as %x", data, first, second)
		}
	})
}
