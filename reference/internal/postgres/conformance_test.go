//go:build unix

package postgres_test

import (
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
	"github.com/animalstore/gatehouse/reference/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	for name, parameters := range map[string]string{
		"defaults":               "",
		"no prepared statements": "&default_query_exec_mode=exec",
		"one connection":         "&pool_max_conns=1",
		// Of the user or the database, which the transactions of this package override.
		"strict isolation": "&default_transaction_isolation=serializable",
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Opener[store.Store] {
				url := postgrestest.Database(t) + parameters
				return func() (store.Store, error) { return postgres.Open(t.Context(), url, postgres.Options{}) }
			})
		})
	}
}

// Through PgBouncer in transaction mode, each transaction can have another connection.
func TestConformanceThroughAPooler(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener[store.Store] {
		url := postgrestest.Pooled(t, postgrestest.Database(t)) + "&default_query_exec_mode=exec"
		return func() (store.Store, error) { return postgres.Open(t.Context(), url, postgres.Options{}) }
	})
}
