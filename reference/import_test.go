package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// A server that moves from SQLite to PostgreSQL answers its clients as before.
func TestImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, dir)
	key, revoked := roomyKey(t, dir, "ann"), roomyKey(t, dir, "bob")
	petstore(t, dir, "keys", "revoke", keyID(t, dir, "--database=petstore.db", "bob"))
	for range 3 {
		mustAsk(t, 201, "POST", p.api+"/v1/pets", key, `{"name":"Rex","categoryId":1}`)
	}
	count := used(t, p, key)
	must(t, p.stop())

	url := postgrestest.Database(t)
	pgDir, config := t.TempDir(), "--config=petstore.yaml"
	// A single server keeps its usage, too.
	writeFile(t, pgDir, "petstore.yaml", fmt.Sprintf("database: %q\nusage_file: %q\n", url, filepath.Join(dir, "petstore.db-usage")))
	file := filepath.Join(dir, "petstore.db")
	code, said := command(t, pgDir, "import", config, file)
	if want := "Imported " + file + " into postgres://"; code != 0 || !strings.Contains(said, want) || !strings.Contains(said, ": 3 pets, 3 keys.\n") {
		t.Fatalf("the import ended with %d and says %q, want 0 and %q with 3 pets and 3 keys", code, said, want)
	}
	p = serve(t, pgDir, config)
	if strings.Contains(p.notice, "pet_live_") {
		t.Errorf("the server on PostgreSQL created a first key: %s", p.notice)
	}
	if n := used(t, p, key); n != count || n < 3 {
		t.Errorf("after the import %d requests are counted, want %d", n, count)
	}
	mustAsk(t, 401, "GET", p.api+"/v1/pets", revoked, "")
	var pet struct{ ID int64 }
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, `{"name":"Tom","categoryId":1}`).into(t, &pet)
	if pet.ID != 4 {
		t.Errorf("the next pet has the ID %d, want 4", pet.ID)
	}
}
