package database

import (
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Pool says how the connections to PostgreSQL are used.
type Pool = postgres.Stats

// PoolOf returns a function that reports the connections of a database that [Open]
// returned, or nil if it has none because it is a SQLite file. The function is safe for
// concurrent use.
func PoolOf(db store.Store) func() Pool {
	if p, ok := db.(*postgres.Store); ok {
		return p.Stats
	}
	return nil
}
