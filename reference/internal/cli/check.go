package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type checkCmd struct {
	JSON bool `help:"Print JSON."`
	sqliteFlags
}

// Help is shown by --help.
func (checkCmd) Help() string {
	return `Examines the database and the usage file: whether all of it can be read, whether its
tables are those of petstore, whether rows refer to others that exist, and whether petstore
could have written each row. Nothing is changed or upgraded. A server may be running; the
usage file is then in use and is not examined. --database also takes a backup.

The exit code is 1 if there is a problem.`
}

func (c checkCmd) Run(ctx context.Context, o output) error {
	settings, err := c.load(insteadOfCheck)
	if err != nil {
		return err
	}
	database, err := sqlite.Check(ctx, settings.Database, sqlite.Options{})
	if err != nil {
		return fmt.Errorf("cannot check: %w", explainMissing(settings.Database, err))
	}
	usage, err := checkUsage(ctx, settings.UsagePath())
	if err != nil {
		return fmt.Errorf("cannot check: %w", err)
	}
	if c.JSON {
		err = printJSON(o.out, newCheckJSON(database, usage))
	} else {
		err = printCheck(o, database, usage)
	}
	if err != nil {
		return err
	}
	if n := len(database.Problems); n > 0 {
		return fmt.Errorf("database %s has %s; restore a backup with petstore restore", database.File, plural(n, "problem"))
	}
	if n := len(usage.Problems); n > 0 {
		return fmt.Errorf("usage file %s has %s; the server starts without what it cannot read", usage.File, plural(n, "problem"))
	}
	return nil
}

// usageReport is what was found in a usage file.
type usageReport struct {
	sqlite.Report
	State    string // "sound", "damaged", "in use by a server" or "none"
	Subjects int64
	damaged  int // records that cannot be read
}

// usageWait is how long a usage file that a server has open is waited for.
const usageWait = 200 * time.Millisecond

func checkUsage(ctx context.Context, path string) (usageReport, error) {
	u := usageReport{State: "sound"}
	var err error
	u.Report, err = sqlite.CheckUsage(ctx, path, sqlite.Options{BusyTimeout: usageWait}, u.loader(ctx))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		u.State = "none"
	case errors.Is(err, sqlite.ErrInUse):
		u.State = "in use by a server"
	case errors.Is(err, store.ErrDamaged), sqlite.IsDamaged(err): // IsDamaged: it is not a database
		u.Problems = append(u.Problems, err.Error())
	case err != nil:
		return u, err
	}
	u.File = path
	if u.damaged > 0 {
		u.Problems = append(u.Problems, plural(u.damaged, "record")+" cannot be read")
	}
	if len(u.Problems) > 0 {
		u.State = "damaged"
	}
	return u, nil
}

// loader returns a function that reads the usage as a server does when it starts.
func (u *usageReport) loader(ctx context.Context) func(store.Usage) error {
	return func(db store.Usage) error {
		limiter, damaged, err := store.LoadLimiter(ctx, db, memory.Options{})
		if err == nil {
			u.Subjects, u.damaged = limiter.Stats().Subjects, damaged
		}
		return err
	}
}

func printCheck(o output, database sqlite.Report, usage usageReport) error {
	for _, file := range []struct {
		what, name, state string
		problems          []string
	}{
		{"database", database.File, databaseState(database), database.Problems},
		{"usage", usage.File, usageState(usage), usage.Problems},
	} {
		fmt.Fprintf(o.out, "%s %s: %s\n", file.what, showable(file.name), file.state)
		for _, problem := range file.problems {
			fmt.Fprintln(o.out, "  "+showable(problem))
		}
	}
	if len(database.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(o.out)
	t := newTable(o.out, "TABLE", "ROWS")
	for _, name := range slices.Sorted(maps.Keys(database.Rows)) {
		t.row(name, database.Rows[name])
	}
	return t.flush()
}

func databaseState(r sqlite.Report) string {
	state := "sound"
	if n := len(r.Problems); n > 0 {
		state = plural(n, "problem")
	} else if r.Schema == 0 {
		return "empty; petstore creates its tables when it opens it"
	}
	state += fmt.Sprintf(", schema %d", r.Schema)
	if r.Schema < r.Latest && !r.Damaged {
		state += fmt.Sprintf("; petstore upgrades it to %d when it opens it, and until then single rows are not checked", r.Latest)
	}
	return state
}

func usageState(u usageReport) string {
	switch u.State {
	case "sound":
		if u.Schema > 0 && u.Schema < u.Latest {
			return "sound, of an older version; petstore converts it when it serves"
		}
		return "sound, " + plural(u.Subjects, "subject")
	case "in use by a server":
		return "in use by a server, so it was not checked"
	case "none":
		return "there is none"
	default:
		return plural(len(u.Problems), "problem")
	}
}

type checkJSON struct {
	Database checkedDatabase `json:"database"`
	Usage    checkedUsage    `json:"usage"`
}

type checkedDatabase struct {
	File     string           `json:"file"`
	Sound    bool             `json:"sound"`
	Problems []string         `json:"problems"`
	Schema   int64            `json:"schema"`
	Latest   int64            `json:"latestSchema"`
	Rows     map[string]int64 `json:"rows"`
}

type checkedUsage struct {
	File     string   `json:"file"`
	State    string   `json:"state"`
	Problems []string `json:"problems"`
	Subjects int64    `json:"subjects"`
}

func newCheckJSON(d sqlite.Report, u usageReport) checkJSON {
	return checkJSON{
		checkedDatabase{d.File, len(d.Problems) == 0, append([]string{}, d.Problems...), d.Schema, d.Latest, d.Rows},
		checkedUsage{u.File, u.State, append([]string{}, u.Problems...), u.Subjects},
	}
}
