package api

import (
	"math/rand/v2"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// The cache bounds its memory by the sizes of its pages, so no page may have a larger one,
// even if its names can hardly be compressed.
func TestSizeOfAPage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{0, 1, 20, 24, 60, 100} {
		for _, length := range []int{1, 30, 100, store.MaxText} {
			pets := make([]store.Pet, count)
			for i := range pets {
				name := make([]rune, length)
				for j := range name {
					name[j] = '\U00020000' + random.Int32N(40_000) // four bytes each
				}
				pets[i] = store.Pet{ID: random.Int64(), Name: string(name), CategoryID: random.Int64(), Status: store.Available}
			}
			page, err := newListPage(store.ListQuery{Limit: 100}, pets, true)
			if err != nil {
				t.Fatal(err)
			}
			keeps := cap(page.body)
			if page.gzipped != nil {
				zipped, err := page.gzipped()
				if err != nil {
					t.Fatal(err)
				}
				keeps += cap(zipped.body)
			}
			if size := page.size(); keeps > size {
				t.Errorf("%d pets with names of %d characters: the bodies keep %d bytes, want at most the size of %d", count, length, keeps, size)
			}
		}
	}
}
