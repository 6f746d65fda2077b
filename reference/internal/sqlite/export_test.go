package sqlite

import "testing"

// Latest is the newest version of the schema.
var Latest = int64(len(content))

// MigrateTo makes a database with a version of the schema and the content that it can
// have.
func MigrateTo(t *testing.T, path string, version int64) { migrateTo(t, path, mainSchema, version) }
