package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
	"github.com/animalstore/gatehouse/reference/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener[store.Store] {
		path := filepath.Join(t.TempDir(), "pets.db")
		return func() (store.Store, error) { return sqlite.Open(t.Context(), path, sqlite.Options{}) }
	})
	storetest.RunUsage(t, func(t *testing.T) storetest.Opener[storetest.UsageStore] {
		path := filepath.Join(t.TempDir(), "pets.db-usage")
		return func() (storetest.UsageStore, error) { return sqlite.OpenUsage(t.Context(), path, sqlite.Options{}) }
	})
}
