package sqlite

import (
	"context"
	"database/sql"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// The statements of a restore run on the file that is replaced (main), with the one that
// replaces it attached (restored).
const (
	never = `9223372036854775807`

	// endText is the instant from which a row of a table keys is not valid.
	endText = `min(coalesce(k.revoked, ` + never + `), coalesce(k.expires, ` + never + `))`

	// The audit log has the end of a key that an earlier restore has removed. That of a
	// rotated key is the last word of the detail, in whole seconds.
	endsText      = `CREATE TEMP TABLE ends AS SELECT id, revoked, expires FROM main.keys`
	auditEndsText = `INSERT INTO temp.ends (id, revoked)
		SELECT target, min(at) FROM main.audit WHERE action = 'key.revoke' GROUP BY target`
	auditRotatedText = `INSERT INTO temp.ends (id, expires)
		SELECT target, min(unixepoch(substr(detail, -21, 20))) * 1000000 AS ends FROM main.audit
		WHERE action = 'key.rotate' AND detail LIKE '% old_expires="____________________"'
			AND target NOT IN (SELECT id FROM main.keys)
		GROUP BY target HAVING ends IS NOT NULL`

	endedText = `SELECT k.id, k.owner, k.name, e.ends FROM restored.keys AS k JOIN
		(SELECT id, min(` + endText + `) AS ends FROM temp.ends AS k GROUP BY id) AS e USING (id)
		WHERE ` + endText + ` > ? AND e.ends < ` + endText + ` ORDER BY k.created, k.id`
	unknownText = `SELECT k.id, k.owner, k.name, nullif(` + endText + `, ` + never + `) FROM restored.keys AS k
		WHERE ` + endText + ` > ? AND id NOT IN (SELECT id FROM temp.ends) ORDER BY k.created, k.id`
	goneText = `SELECT k.id, k.owner, k.name, nullif(` + endText + `, ` + never + `) FROM main.keys AS k
		WHERE ` + endText + ` > ? AND id NOT IN (SELECT id FROM restored.keys) ORDER BY k.created, k.id`

	revokeText = `UPDATE restored.keys AS k SET revoked = e.revoked
		FROM (SELECT id, min(revoked) AS revoked FROM temp.ends GROUP BY id) AS e
		WHERE e.id = k.id AND e.revoked < coalesce(k.revoked, ` + never + `)`
	expireText = `UPDATE restored.keys AS k SET expires = e.expires
		FROM (SELECT id, min(expires) AS expires FROM temp.ends GROUP BY id) AS e
		WHERE e.id = k.id AND e.expires < coalesce(k.expires, ` + never + `)`

	mergeAuditText = `INSERT INTO restored.audit (at, actor, source, action, target, detail)
		SELECT at, actor, source, action, target, detail FROM main.audit AS m
		WHERE NOT EXISTS (SELECT 1 FROM restored.audit AS r WHERE r.at = m.at AND r.actor = m.actor AND r.source = m.source
			AND r.action = m.action AND r.target = m.target AND r.detail = m.detail)
		ORDER BY m.id`

	// IDs of pets that were created since the backup are not given again.
	beginPetsText = `INSERT INTO restored.sqlite_sequence (name, seq)
		SELECT 'pets', 0 WHERE NOT EXISTS (SELECT 1 FROM restored.sqlite_sequence WHERE name = 'pets')`
	petIDsText = `UPDATE restored.sqlite_sequence
		SET seq = max(seq, coalesce((SELECT max(seq) FROM main.sqlite_sequence WHERE name = 'pets'), 0)) WHERE name = 'pets'`

	// For a restore without a file that is replaced.
	validKeysText = `SELECT k.id, k.owner, k.name, nullif(` + endText + `, ` + never + `) FROM keys AS k
		WHERE ` + endText + ` > ? ORDER BY k.created, k.id`
)

// mergeInto takes over into next, which replaces the file, what must not be lost: ends of
// keys, audit entries, the IDs of pets. It sets the lists of r, unless the file cannot be
// read.
func (t *replaced) mergeInto(ctx context.Context, next file, at time.Time, r *Restored) error {
	if t.db == nil || !t.hasKeys {
		return nil
	}
	merged := *r
	err := t.merge(ctx, next, at, &merged)
	switch {
	case IsDamaged(err) || primary(code(err)) == sqlite3.SQLITE_ERROR: // a table is missing
		return nil
	case err != nil:
		return t.explain("restore", err)
	}
	*r = merged
	r.Known = true
	return nil
}

func (t *replaced) merge(ctx context.Context, next file, at time.Time, r *Restored) error {
	if _, err := t.db.ExecContext(ctx, "ATTACH ? AS restored", next.path); err != nil {
		return err
	}
	defer func() { _, _ = t.db.ExecContext(context.WithoutCancel(ctx), "DETACH restored") }()
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit

	before, after := []string{endsText}, []string{revokeText, expireText, beginPetsText, petIDsText}
	if t.hasAudit {
		before, after = append(before, auditEndsText, auditRotatedText), append(after, mergeAuditText)
	}
	if err := execAll(ctx, tx, before); err != nil {
		return err
	}
	for _, list := range []struct {
		keys *[]RestoredKey
		text string
	}{{&r.Ended, endedText}, {&r.Unknown, unknownText}, {&r.Gone, goneText}} {
		if *list.keys, err = restoredKeys(ctx, tx, list.text, at); err != nil {
			return err
		}
	}
	if err := execAll(ctx, tx, append(after, "DROP TABLE temp.ends")); err != nil {
		return err
	}
	return tx.Commit()
}

func execAll(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, text := range texts {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func restoredKeys(ctx context.Context, q querier, text string, at time.Time) (keys []RestoredKey, err error) {
	rows, err := q.QueryContext(ctx, text, at.UnixMicro())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k RestoredKey
		var ends sql.NullInt64
		if err := rows.Scan(&k.ID, &k.Owner, &k.Name, &ends); err != nil {
			return nil, err
		}
		if ends.Valid {
			k.Ends = instant(ends.Int64)
		}
		keys = append(keys, k)
	}
	return keys, rows.Err()
}
