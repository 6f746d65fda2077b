package api

import (
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// The encoding by hand is that of encoding/json, also for what a store should not hold.
func FuzzEncodePets(f *testing.F) {
	for _, name := range []string{
		"Rex", "", `a"b\c/d`, "<b>&amp;</b>", "Žofka 犬 🐕", "\u2028\u2029", "a\x00b\x1f\x7f\u0080", "\xff\xc0\xaf", "\ufffd",
	} {
		f.Add(int64(1), name, int64(-5), "available")
	}
	f.Fuzz(func(t *testing.T, id int64, name string, category int64, status string) {
		type pet struct {
			ID         int64        `json:"id"`
			Name       string       `json:"name"`
			CategoryID int64        `json:"categoryId"`
			Status     store.Status `json:"status"`
		}
		p := store.Pet{ID: id, Name: name, CategoryID: category, Status: store.Status(status)}
		compare(t, pet(p), func() ([]byte, error) { return encodePet(p) })
		for _, pets := range [][]store.Pet{{}, {p}, {p, {}, p}} {
			same := make([]pet, len(pets))
			for i := range pets {
				same[i] = pet(pets[i])
			}
			compare(t, same, func() ([]byte, error) { return encodePets(pets) })
		}
	})
}

func compare(t *testing.T, v any, byHand func() ([]byte, error)) {
	t.Helper()
	want, wantErr := encode(v)
	got, err := byHand()
	if err != nil || wantErr != nil || string(got) != string(want) {
		t.Errorf("the encoding by hand is %s, %v, want %s, %v", got, err, want, wantErr)
	}
}

func BenchmarkEncodePets(b *testing.B) {
	pets := make([]store.Pet, 20)
	for i := range pets {
		pets[i] = store.Pet{ID: int64(i + 1), Name: "Duke", CategoryID: int64(i), Status: store.Available}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encodePets(pets); err != nil {
			b.Fatal(err)
		}
	}
}
