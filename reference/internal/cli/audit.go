package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type auditCmd struct {
	Since *period `placeholder:"DURATION" help:"Only entries of this period until now, such as 24h or 30d."`
	Limit int     `default:"100" placeholder:"N" help:"At most this many entries, the newest, up to 10000 (default ${default})."`
	JSON  bool    `help:"Print JSON."`
	databaseFlags
}

// Help is shown by --help.
func (auditCmd) Help() string {
	return `The audit log has an entry for each key that was created, revoked or rotated, for
each ban that an operator started or ended, and for each restore or import of the database.
An entry has the time, the actor, and the address if the actor used the admin listener.
Entries are never changed or deleted. The newest come first.`
}

func (c auditCmd) Run(ctx context.Context, o output, settings *config.Config) error {
	q := store.AuditQuery{Limit: c.Limit}
	if err := q.Validate(); err != nil {
		return usageError{fmt.Errorf("audit: --limit must be 1 to %d, got %d", store.MaxAudit, c.Limit)}
	}
	if c.Since != nil {
		q.Since = time.Now().Add(-time.Duration(*c.Since))
	}
	return withDatabase(ctx, settings, false, func(db store.Store) error {
		entries, err := db.ListAudit(ctx, q)
		if err != nil {
			return err
		}
		if err := show(o, c.JSON, entries, "There are no entries.", addAudit, "TIME", "ACTOR", "FROM", "ACTION", "TARGET", "DETAIL"); err != nil {
			return err
		}
		if len(entries) == c.Limit && !c.JSON {
			o.say("There may be older entries; --limit shows more.")
		}
		return nil
	})
}

func addAudit(t table, e store.AuditEntry) {
	t.row(showTime(e.At), e.Actor, cmp.Or(e.From, "-"), e.Action, e.Target, cmp.Or(e.Detail, "-"))
}

// actor returns the user of this process, for the audit log: "cli:ada@host".
func actor() store.Actor {
	name := "cli:" + userName()
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	if a := (store.Actor{Name: name}); a.Validate() == nil {
		return a
	}
	// A name that is too long or has control characters.
	return store.Actor{Name: "cli:uid " + strconv.Itoa(os.Getuid())}
}

func userName() string {
	// A container may run as a user without a name.
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}
