package sqlite

import "testing"

// Latest is the newest version of the schema.
var Latest = int64(len(content))

// MigrateTo makes a database with a version of the schema and the content that it can
// have.
func MigrateTo(t *testing.T, path string, version int64) { migrateTo(t, path, mainSchema, version) }

// MakeFirstUsage makes limiter state of the first version of its schema, with the header
// "h" and n records.
func MakeFirstUsage(t *testing.T, path string, n int) {
	t.Helper()
	db := firstUsage(t, path)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?)
		INSERT INTO usage SELECT (i << 51) + i, 4000000000, zeroblob(24) FROM n`, n); err != nil {
		t.Fatal(err)
	}
}
