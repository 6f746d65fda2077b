package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/admin"
)

type usageCmd struct {
	Owner string `arg:"" help:"Owner of keys, as in petstore keys list."`
	JSON  bool   `help:"Print JSON."`
	adminFlags
}

// Help is shown by --help.
func (usageCmd) Help() string {
	return `It also shows the charged requests of each of the last 90 days (UTC) on which there were
any. All keys of an owner share the usage; those of different plans differ in their limits.`
}

func (c usageCmd) Run(ctx context.Context, o output) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	u, err := client.Usage(ctx, c.Owner)
	if err != nil {
		return explainAdmin(err)
	}
	if c.JSON {
		return printJSON(o.out, u)
	}
	return printUsage(o.out, u)
}

func printUsage(w io.Writer, u admin.Usage) error {
	fmt.Fprintf(w, "%s has %s.\n", showable(u.Owner), plural(u.Keys, "active key"))
	if u.Ban != nil {
		fmt.Fprintf(w, "It is banned until %s.\n", showTime(u.Ban.Ends))
	}
	if len(u.Plans) > 0 {
		if err := printPlanUsage(w, u.Plans); err != nil {
			return err
		}
	}
	if len(u.Limited) > 0 {
		if err := printKeyUsage(w, u.Limited); err != nil {
			return err
		}
	}
	if len(u.Days) == 0 {
		_, err := fmt.Fprintln(w, "\nIt has sent no request in the last 90 days.")
		return err
	}
	fmt.Fprintln(w)
	t := newTable(w, "DAY", "ALLOWED", "DENIED")
	for _, d := range u.Days {
		t.row(d.Day, strconv.FormatInt(d.Allowed, 10), strconv.FormatInt(d.Denied, 10))
	}
	return t.flush()
}

func printPlanUsage(w io.Writer, plans []admin.PlanUsage) error {
	fmt.Fprintln(w)
	t := newTable(w, "PLAN", "QUOTA", "USED", "LEFT", "RESET", "STRIKES LEFT")
	for _, p := range plans {
		if p.Error != "" {
			t.row(p.Plan, p.Error)
			continue
		}
		if p.Suspended || p.Unlimited {
			t.row(p.Plan, map[bool]string{true: "suspended", false: "unlimited"}[p.Suspended])
			continue
		}
		strikes := "-"
		if p.StrikesLeft != nil {
			strikes = strconv.Itoa(*p.StrikesLeft)
		}
		for _, q := range p.Quotas {
			t.row(append(append([]string{p.Plan}, quotaCells(q)...), strikes)...)
		}
	}
	return t.flush()
}

// printKeyUsage prints the keys with limits of their own.
func printKeyUsage(w io.Writer, keys []admin.KeyUsage) error {
	fmt.Fprintln(w)
	t := newTable(w, "KEY", "NAME", "LIMIT", "USED", "LEFT", "RESET")
	for _, k := range keys {
		for _, q := range k.Quotas {
			t.row(append([]string{k.ID, k.Name}, quotaCells(q)...)...)
		}
	}
	return t.flush()
}

// quotaCells returns a quota, what is used and left of it, and when it resets.
func quotaCells(q admin.QuotaUsage) []string {
	one := ratelimit.Quota{Limit: q.Limit, Window: time.Duration(q.WindowSeconds) * time.Second}
	quota, most := one.String(), q.Limit
	switch {
	case q.Calendar != "":
		quota = strconv.FormatInt(q.Limit, 10) + "/" + q.Calendar
	case q.Burst > 0:
		quota, most = one.Smooth(q.Burst).String(), q.Burst
	}
	return []string{
		quota, strconv.FormatInt(most-q.Remaining, 10), strconv.FormatInt(q.Remaining, 10),
		showTime(time.Unix(q.Reset, 0)),
	}
}
