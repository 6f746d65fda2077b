package database

import (
	"context"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Imported says what [Import] has copied.
type Imported struct{ Pets, Keys int64 }

// Import copies everything in a SQLite file into the PostgreSQL database with this name,
// all or nothing. It creates or upgrades the tables as [Open] does. The file is a backup, or
// that of a server that has stopped, and is not changed; see [sqlite.Export]. The error
// wraps [postgres.ErrNotEmpty] if the database has content, and [fs.ErrNotExist] if there is
// no file.
func Import(ctx context.Context, name, file string, by store.Actor, at time.Time, o Options) (n Imported, err error) {
	if !IsPostgres(name) {
		return n, errors.New("import: the database must be PostgreSQL")
	}
	if err := postgres.Check(name); err != nil {
		return n, &NameError{err}
	}
	to, err := postgres.Open(ctx, name, o.postgres(name))
	if err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	err = sqlite.Export(ctx, file, sqlite.Options{BusyTimeout: importWait}, func(x store.Export) (err error) {
		n.Pets, n.Keys, err = to.Import(ctx, x, by, at)
		return err
	})
	return n, err
}

// importWait is how long an import waits for other commands that have the file open.
const importWait = 2 * time.Second
