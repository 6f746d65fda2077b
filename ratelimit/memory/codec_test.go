package memory_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestLoadRefusesDamage(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	expires := noon.Add(time.Hour).Unix()
	for name, data := range map[string][]byte{
		"an unknown kind":     {9, 1, 2, 3},
		"no windows":          {3},
		"a window cut short":  {3, 120, 2, 2},
		"a window of nothing": {3, 0, 2, 2, 2},
		"a limit of nothing":  {3, 120, 0, 2, 2},
		"a negative usage":    {3, 120, 2, 1, 2},
		"two equal windows":   {3, 120, 2, 2, 2, 120, 2, 2, 2},
		"more than the most":  {3, 120, 2, 128, 128, 128, 128, 32, 2},
		"a negative end":      {3, 120, 2, 2, 1},
		"a record's data":     {4, 2, 0, 2, 2, 0, 2, 2},
	} {
		l := newLimiter(t, memory.Options{Now: clock.Now})
		if err := l.Load([]memory.Record{{Key: 78, Data: data, Expires: expires}}); err == nil {
			t.Errorf("%s was loaded", name)
		}
		if held := l.Stats().Subjects; held != 0 {
			t.Errorf("%s left %d subjects", name, held)
		}
	}
	for name, data := range map[string][]byte{
		"a record cut short":        {4, 0, 0, 0},
		"a record of nonsense":      {4, 1, 1, 1, 1, 1, 1, 1},
		"strikes beside a ban":      {4, 2, 2, 2, 2, 2, 2, 2},
		"decay without strikes":     {4, 0, 0, 2, 2, 2, 0, 2},
		"an account's data":         {3, 120, 2, 2, 2},
		"an expiry out of range":    {4, 2, 0, 2, 2, 0, 2, 255, 255, 255, 255, 255, 15},
		"a record of older version": {2, 0, 0, 0, 0, 0, 0},
	} {
		l := newLimiter(t, memory.Options{Now: clock.Now})
		if err := l.Load([]memory.Record{{Key: 77, Data: data, Expires: expires}}); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
	l := newLimiter(t, memory.Options{Now: clock.Now})
	if err := l.Load([]memory.Record{{Key: 77, Data: []byte{9}, Expires: noon.Unix() - 60}, {Key: 78}}); err != nil {
		t.Errorf("what has expired or is gone is passed over, got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	l := newLimiter(f, memory.Options{Now: func() time.Time { return noon }})
	for range 14 {
		take(f, l, "subject", statePlan)
	}
	_ = l.Save(func(records []memory.Record) error {
		for _, r := range records {
			f.Add(r.Data)
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLimiter(t, memory.Options{Now: func() time.Time { return noon }, MaxSubjects: 4})
		key := uint64(42)
		if len(data) > 0 && data[0] == 4 {
			key++ // of strikes and bans
		}
		if err := l.Load([]memory.Record{{Key: key, Data: data, Expires: noon.Unix() + 1}}); err != nil {
			return
		}
		// What was taken in is saved as it came, but for the spelling of numbers.
		var first, second []byte
		_ = l.Save(func(r []memory.Record) error { first = r[0].Data; return nil })
		again := newLimiter(t, memory.Options{Now: func() time.Time { return noon }, MaxSubjects: 4})
		if err := again.Load([]memory.Record{{Key: key, Data: first, Expires: noon.Unix() + 1}}); err != nil {
			t.Fatalf("%x was loaded and saved as %x, which is refused: %v", data, first, err)
		}
		_ = again.Save(func(r []memory.Record) error { second = r[0].Data; return nil })
		if string(first) != string(second) {
			t.Errorf("%x was saved as %x and then as %x", data, first, second)
		}
	})
}
