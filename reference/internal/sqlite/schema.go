package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/main
var embedded embed.FS

// migrations are the steps that make the schema. The first sets the application_id to mark.
var migrations = folder("migrations/main")

const mark int32 = 0x50455453

func folder(name string) fs.FS {
	files, err := fs.Sub(embedded, name)
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// newProvider returns the migrations for a database, and the version of the newest.
func newProvider(db *sql.DB) (_ *goose.Provider, latest int64, err error) {
	// Goose's registry and its log are global, so they are not used.
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, 0, fmt.Errorf("read migrations: %w", err)
	}
	sources := provider.ListSources()
	return provider, sources[len(sources)-1].Version, nil
}

// prepare upgrades the file to the newest version of the schema. It refuses a file of
// another kind and does not change it.
func (f file) prepare(ctx context.Context, db *sql.DB, o Options) error {
	provider, latest, err := newProvider(db)
	if err != nil {
		return err
	}
	version, err := f.inspect(ctx, db)
	if err != nil {
		return err
	}
	if version < latest && o.NoMigrate {
		return fmt.Errorf("open database %s: it has schema %d, this version needs %d, and migrate is manual; run petstore migrate",
			f.name, version, latest)
	}
	if err := f.useWAL(ctx, db); err != nil {
		return err
	}
	return f.upgrade(ctx, db, provider, version, latest, o)
}

// newer is the error for a file of a newer version.
func (f file) newer(version, latest int64) error {
	return fmt.Errorf("open database %s: a newer version of this program wrote it (schema %d, this version knows %d); use the newer version, or restore an older backup",
		f.name, version, latest)
}

// inspect returns the version of the schema of the file, 0 if it has none yet. It refuses a
// newer one, and one that is not as the migrations make it. It only reads.
func (f file) inspect(ctx context.Context, db *sql.DB) (version int64, err error) {
	_, latest, err := newProvider(db)
	if err != nil {
		return 0, err
	}
	// As of one instant, because another process may be creating the tables now.
	err = f.snapshot(ctx, db, func(conn *sql.Conn) error {
		if version, err = f.version(ctx, conn); err != nil {
			return err
		}
		if version > latest {
			return f.newer(version, latest)
		}
		problems, err := differences(ctx, conn, version)
		switch {
		case err != nil:
			return f.explain("open", err)
		case len(problems) > 0:
			return fmt.Errorf("open database %s: %w: %s", f.name, errSchema, strings.Join(problems, ", "))
		}
		return nil
	})
	return version, err
}

// version returns the version of the schema, 0 if there is none yet. It refuses a file of
// another program.
func (f file) version(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	var found int32
	var versioned, foreign bool
	if err := conn.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'goose_db_version'),
		       EXISTS (SELECT 1 FROM sqlite_schema WHERE name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#')`,
	).Scan(&versioned, &foreign); err != nil {
		return 0, f.explain("open", err)
	}
	if err := conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&found); err != nil {
		return 0, f.explain("open", err)
	}

	switch {
	case found != mark && (found != 0 || foreign):
		return 0, fmt.Errorf("open database %s: it belongs to another program; choose another file", f.name)
	case !versioned:
		return 0, nil
	}
	if err := conn.QueryRowContext(ctx,
		"SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version); err != nil {
		return 0, f.explain("open", err)
	}
	return version, nil
}

// Migrate creates the database in the file at path, or upgrades one of an older version
// as [Open] does, and closes it. It returns the versions of its schema before and
// after; from is 0 for a database that had none.
func Migrate(ctx context.Context, path string, o Options) (from, to int64, err error) {
	o.NoMigrate = false
	f, err := o.existingFile(path)
	if err == nil {
		from, err = f.inspectAlone(ctx)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, err
	}
	db, err := Open(ctx, path, o)
	if err != nil {
		return 0, 0, err
	}
	if err := db.Close(); err != nil {
		return 0, 0, err
	}
	to, err = f.inspectAlone(ctx)
	return from, to, err
}

// inspectAlone is inspect with a connection of its own.
func (f file) inspectAlone(ctx context.Context) (int64, error) {
	db, err := f.connect(1, "query_only(1)")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return f.inspect(ctx, db)
}

// An Upgrade is that of a file of an older version.
type Upgrade struct {
	File     string // as it was given to Open
	From, To int64  // versions of the schema
	Copy     string // path of the copy of the file as it was before
}

// errRaced: another process has upgraded the file meanwhile.
var errRaced = errors.New("another process has upgraded the file")

// upgrade brings the schema of the file from a version to the latest. It first makes a
// copy of a file that has content, so that an operator can go back to the older
// version of the program.
func (f file) upgrade(ctx context.Context, db *sql.DB, provider *goose.Provider, version, latest int64, o Options) error {
	var copied string // a copy of the file as it is now
	if 0 < version && version < latest && !o.noCopy {
		var err error
		copied, err = f.copyBefore(ctx, db, version)
		switch {
		case errors.Is(err, errRaced):
			return f.prepare(ctx, db, o)
		case err != nil:
			return fmt.Errorf("upgrade database %s: it is copied first, and that failed, so nothing was changed: %w", f.name, err)
		case o.OnUpgrade != nil:
			o.OnUpgrade(Upgrade{f.name, version, latest, copied})
		}
	}
	for version < latest {
		_, upErr := provider.Up(ctx)
		if upErr == nil {
			return nil
		}
		// Another process may be upgrading at the same time. Each step is one
		// transaction, so with every attempt one of the two makes progress.
		now, err := f.inspect(ctx, db)
		switch {
		case err != nil:
			return err
		case now == version && copied != "": // otherwise each start that fails would leave another copy
			return f.explain("upgrade", errors.Join(upErr, os.Remove(copied)))
		case now == version:
			return f.explain("upgrade", upErr)
		}
		version, copied = now, ""
	}
	return nil
}

// copyBefore copies the file, which has a version of the schema, and returns the path of
// the copy.
func (f file) copyBefore(ctx context.Context, db *sql.DB, version int64) (string, error) {
	for {
		to := fmt.Sprintf("%s.v%d-%s.backup", realPath(f.path), version, timestamp(time.Now()))
		err := f.copyTo(ctx, db, to, func(partial file) error {
			copied, err := partial.inspectAlone(ctx)
			if err == nil && copied != version {
				err = errRaced
			}
			return err
		})
		if !errors.Is(err, fs.ErrExist) {
			return to, err
		}
		time.Sleep(time.Millisecond) // another process has made a copy in this one
	}
}

// timestamp formats a time for the name of a file.
func timestamp(t time.Time) string { return t.UTC().Format("20060102T150405.000Z") }

// errSchema is in the error for a file that has other tables, indexes, triggers or views than
// the migrations make.
var errSchema = errors.New("its schema is not the one that petstore makes")

// differences compares the schema of a file, which has a version, with what the migrations
// make. A trigger can change what a statement does, a table or an index can make it fail or be
// in the way of an upgrade, so nothing else may be there.
func differences(ctx context.Context, conn *sql.Conn, version int64) (problems []string, err error) {
	want, err := objects(ctx, version)
	if err != nil {
		return nil, err
	}
	got, err := schemaObjects(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, o := range slices.Sorted(maps.Keys(want)) {
		switch text, exists := got[o]; {
		case !exists:
			problems = append(problems, fmt.Sprintf("%s is missing", o))
		case text != want[o]:
			problems = append(problems, fmt.Sprintf("%s is not as this program makes it", o))
		}
		delete(got, o)
	}
	for _, o := range slices.Sorted(maps.Keys(got)) {
		problems = append(problems, fmt.Sprintf("%s does not belong to this program", o))
	}
	return problems, nil
}

// objects returns what a version of the schema consists of.
func objects(ctx context.Context, version int64) (map[string]string, error) {
	if version == 0 {
		return nil, nil
	}
	db, err := inMemory(ctx, version)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return schemaObjects(ctx, conn)
}

// inMemory returns an empty database with a version of the schema.
func inMemory(ctx context.Context, version int64) (_ *sql.DB, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	provider, _, err := newProvider(db)
	if err != nil {
		return nil, err
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		return nil, fmt.Errorf("make the schema in memory: %w", err)
	}
	return db, nil
}

// schemaObjects returns the text of each table, index, trigger and view, without white
// space, by its type and name.
func schemaObjects(ctx context.Context, conn *sql.Conn) (map[string]string, error) {
	objects := map[string]string{}
	for object, err := range eachRow(ctx, conn, scanObject, `SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema
		WHERE type IN ('trigger', 'view') OR name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'`) {
		if err != nil {
			return nil, err
		}
		objects[object[0]] = strings.Join(strings.Fields(object[1]), "")
	}
	return objects, nil
}

func scanObject(row scanner) (object [2]string, err error) {
	err = row.Scan(&object[0], &object[1])
	return object, err
}
