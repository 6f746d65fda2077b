//go:build unix

package database_test

import (
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// SQLite keeps the last IDs in an ordinary table, which a program that repairs a file may
// leave incomplete. SQLite still gives an ID that is larger than all others, and so must
// PostgreSQL.
func TestImportWithoutTheLastIDs(t *testing.T) {
	for name, text := range map[string]string{
		"no last audit entry":    `DELETE FROM sqlite_sequence WHERE name = 'audit'`,
		"a smaller one":          `UPDATE sqlite_sequence SET seq = 3 WHERE name = 'audit'`,
		"NULL":                   `UPDATE sqlite_sequence SET seq = NULL WHERE name = 'audit'`,
		"two last audit entries": `INSERT INTO sqlite_sequence (rowid, name, seq) VALUES (-1, 'audit', 3)`,
		"two last pets":          `INSERT INTO sqlite_sequence (rowid, name, seq) VALUES (-1, 'pets', 3)`,
	} {
		t.Run(name, func(t *testing.T) {
			file, url := fill(t), postgrestest.Database(t)
			db := rawFile(t, file)
			_, err := db.Exec(text)
			must(t, err)
			must(t, db.Close())
			_, err = database.Import(t.Context(), url, file, operator, noon, database.Options{})
			must(t, err)
			to := open(t, url)
			if pet, err := to.CreatePet(t.Context(), store.NewPet{Name: "new"}); err != nil || pet.ID <= 7000 {
				t.Errorf("a new pet is %+v (%v), want an ID over 7000", pet, err)
			}
			must(t, to.AddAudit(t.Context(), store.AuditEntry{At: noon, Actor: "ada", Action: "ban.end", Target: "bob"}))
		})
	}
}
