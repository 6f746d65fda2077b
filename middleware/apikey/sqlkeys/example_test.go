package sqlkeys_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A service keeps its keys in a database that it has open.
func Example() {
	run := func(ctx context.Context, db *sql.DB) error {
		keys := sqlkeys.NewPostgreSQL(db)
		if _, err := db.ExecContext(ctx, keys.Schema()); err != nil {
			return err
		}
		format, err := apikey.NewFormat("pet_live_")
		if err != nil {
			return err
		}
		secret := format.Generate()
		key, err := keys.Create(ctx, sqlkeys.NewKey{
			Digest: secret.Digest(), LastFour: secret.LastFour(),
			Name: "web shop", Owner: "ann", Plan: "free", Created: time.Now(),
		})
		if err != nil {
			return err
		}
		fmt.Println(key.ID, secret.Reveal()) // the secret is shown once, and stored nowhere

		free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
		plans := map[string]*ratelimit.Plan{"free": free}
		verifier, err := apikey.NewVerifier(format, sqlkeys.NewStore(keys.ByDigest, keys.Used,
			func(name string, _ []string) (*ratelimit.Plan, error) { return plans[name], nil }), apikey.Options{})
		if err != nil {
			return err
		}
		principal, err := verifier.Verify(ctx, secret.Reveal())
		fmt.Println(principal.Owner, err)
		return err
	}
	_ = run // with what sql.Open returns
}

// A transaction writes an entry of an audit log together with a key.
func ExampleTable_Revoke() {
	revoke := func(ctx context.Context, db *sql.DB, id string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		key, changed, err := sqlkeys.NewPostgreSQL(tx).Revoke(ctx, id, time.Now())
		if err != nil || !changed {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO audit (at, what) VALUES ($1, $2)`, key.Revoked, "revoked "+key.ID); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = revoke
}
