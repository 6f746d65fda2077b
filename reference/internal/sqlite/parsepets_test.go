package sqlite

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A page is read as one text, which no name can be mistaken for.
func TestPageOfOddNames(t *testing.T) {
	s := openTest(t)
	want := []store.Pet{}
	for i, name := range []string{
		" ", "5", "1 2 sold 3 Rex", "  4 5  ", ",", "", "'\"\\", "犬 🐕", "\u2028", strings.Repeat("🐕", store.MaxText), "Rex",
	} {
		if name == "" {
			continue // refused by the schema
		}
		status := []store.Status{store.Available, store.Pending, store.Sold}[i%3]
		category := []int64{0, math.MinInt64, math.MaxInt64, -1}[i%4]
		pet, err := s.CreatePet(t.Context(), store.NewPet{Name: name, CategoryID: category, Status: status})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, pet)
	}
	for limit := 1; limit <= len(want)+1; limit++ {
		got, more, err := s.ListPets(t.Context(), store.ListQuery{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[:min(limit, len(want))], got); diff != "" || more != (limit < len(want)) {
			t.Errorf("a page of %d: there are more: %t (-want +got):\n%s", limit, more, diff)
		}
	}
}

// What no page can be is an error, and never a panic.
func FuzzParsePets(f *testing.F) {
	for _, text := range []string{
		"", "1 2 sold 3 Rex", "1 2 sold 3 Rex2 -5 available 1 x", "1 2 sold 4 Rex", "1 2 sold -1 Rex", "1", "x 2 sold 3 Rex",
		"1 2 sold 99999999999999999999 Rex", "1 2 sold  ", " ",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pets, err := parsePets(text, 3)
		if err != nil && pets != nil || err == nil && text != "" && len(pets) == 0 {
			t.Errorf("parsePets(%q) = %v, %v, want pets or an error", text, pets, err)
		}
	})
}
