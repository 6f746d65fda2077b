package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schema compares the schema of the file with what the migrations make: a table or an
// index that is missing or different, and a trigger or a view of somebody else. Other
// tables and indexes do no harm.
func (r *Report) schema(ctx context.Context, conn *sql.Conn, s schema) error {
	want, err := s.objects(ctx, r.Schema)
	if err != nil {
		return err
	}
	got, err := schemaObjects(ctx, conn)
	if err != nil {
		return err
	}
	for _, o := range slices.Sorted(maps.Keys(want)) {
		text, exists := got[o]
		switch {
		case !exists:
			r.Problems = append(r.Problems, fmt.Sprintf("%s is missing", o))
		case text != want[o]:
			r.Problems = append(r.Problems, fmt.Sprintf("%s is not as this program makes it", o))
		default:
			continue
		}
		// Without an index the store works, slowly or less strictly.
		r.Damaged = r.Damaged || strings.HasPrefix(o, "table ")
	}
	for _, o := range slices.Sorted(maps.Keys(got)) {
		if _, ours := want[o]; !ours && (strings.HasPrefix(o, "trigger ") || strings.HasPrefix(o, "view ")) {
			r.Problems = append(r.Problems, fmt.Sprintf("%s does not belong to this program", o))
		}
	}
	return nil
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
		WHERE name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'`)
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
