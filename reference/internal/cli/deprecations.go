package cli

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/adminapi"
)

type deprecationsCmd struct {
	JSON bool `help:"Print JSON."`
	adminFlags
}

// Help is shown by --help.
func (deprecationsCmd) Help() string {
	return `A DAY is the number of requests a day in the last seven days. The owners with requests
there are those to write to before the sunset, when the operation is removed.`
}

func (c deprecationsCmd) Run(ctx context.Context, o output) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	list, err := client.Deprecations(ctx)
	switch {
	case err != nil:
		return explainAdmin(err)
	case c.JSON:
		return printJSON(o.out, list)
	case len(list) == 0:
		o.say("No operation is deprecated.")
		return nil
	}
	return printDeprecations(o.out, list)
}

func printDeprecations(w io.Writer, list []adminapi.Deprecation) error {
	t := newTable(w, "OPERATION", "SUNSET", "DAYS LEFT", "OWNER", "REQUESTS", "A DAY", "LAST")
	for _, d := range list {
		sunset, days := "-", "-"
		if d.Sunset != nil {
			sunset, days = d.Sunset.UTC().Format(time.DateOnly), strconv.Itoa(*d.DaysLeft)
		}
		if len(d.Owners) == 0 {
			t.row(d.Operation, sunset, days, "-", "0", "0.0", "-")
		}
		for _, u := range d.Owners {
			t.row(d.Operation, sunset, days, u.Owner, strconv.FormatInt(u.Requests, 10),
				strconv.FormatFloat(u.PerDay, 'f', 1, 64), showTime(u.Last))
		}
	}
	return t.flush()
}
