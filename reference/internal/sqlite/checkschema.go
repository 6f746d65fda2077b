package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// errSchema is in the error for a file that has other tables, indexes, triggers or views than
// the migrations make.
var errSchema = errors.New("its schema is not the one that petstore makes")

// differences compares the schema of a file, which has a version, with what the migrations
// make. A trigger can change what a statement does, a table or an index can make it fail or be
// in the way of an upgrade, so nothing else may be there.
func (s schema) differences(ctx context.Context, conn *sql.Conn, version int64) (problems []string, err error) {
	want, err := s.objects(ctx, version)
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
func (s schema) objects(ctx context.Context, version int64) (map[string]string, error) {
	if version == 0 {
		return nil, nil
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	provider, _, err := s.provider(db)
	if err != nil {
		return nil, err
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		return nil, fmt.Errorf("make the schema in memory: %w", err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return schemaObjects(ctx, conn)
}

// schemaObjects returns the text of each table, index, trigger and view by its type and
// name.
func schemaObjects(ctx context.Context, conn *sql.Conn) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, `SELECT type || ' ' || name, sql FROM sqlite_schema
		WHERE type IN ('trigger', 'view') OR name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	objects := map[string]string{}
	for rows.Next() {
		var name string
		var text sql.NullString
		if err := rows.Scan(&name, &text); err != nil {
			return nil, err
		}
		objects[name] = strings.Join(strings.Fields(text.String), " ")
	}
	return objects, rows.Err()
}
