package sqlite_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Databases exist that each of these migrations has made, and a check compares them with
// what the migrations make now, comments included. So a migration never changes: a change
// of the schema is another migration, which is added here.
func TestMigrationsNeverChange(t *testing.T) {
	got := map[string]string{}
	folder := os.DirFS("migrations")
	if err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		sum := sha256.Sum256(content)
		got[path] = hex.EncodeToString(sum[:8])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"main/00001_pets.sql":             "13fd4589f880331c",
		"main/00002_keys.sql":             "7525d7dbbc154267",
		"main/00003_deprecated_use.sql":   "3ff6a63b7cc192d3",
		"main/00004_audit.sql":            "00744f5b90ec73c1",
		"main/00005_daily_use.sql":        "ee851139853ecbea",
		"main/00006_idempotency_keys.sql": "d60f45709da11180",
		"main/00007_key_limits.sql":       "8310d40d6176d1e8",
		"main/00008_pets_pages.sql":       "141dd1f033e42bdc",
		"usage/00001_usage.sql":           "7b43f065780fd623",
		"usage/00002_parts.sql":           "91d14d1423ca3124",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("migrations (-want +got):\n%s", diff)
	}
}
