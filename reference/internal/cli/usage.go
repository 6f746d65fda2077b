package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/api"
)

type usageCmd struct {
	Owner text `arg:"" help:"Owner of keys, as in petstore keys list."`
	JSON  bool `help:"Print JSON."`
	adminFlags
}

// Help is shown by --help.
func (usageCmd) Help() string {
	return `It also shows the charged requests of each of the last 90 days (UTC) on which there were
any, up to ten seconds late. All keys of an owner share the usage; keys of different plans
differ in their limits.`
}

func (c usageCmd) Run(ctx context.Context, o output, client admin.Client) error {
	u, err := client.Usage(ctx, string(c.Owner))
	if err != nil {
		return err
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
		_, err := fmt.Fprintln(w, "\nNo request of the last 90 days is stored.")
		return err
	}
	fmt.Fprintln(w)
	t := newTable(w, "DAY", "ALLOWED", "DENIED")
	for _, d := range u.Days {
		t.row(d.Day, d.Allowed, d.Denied)
	}
	return t.flush()
}

func printPlanUsage(w io.Writer, plans []admin.PlanUsage) error {
	fmt.Fprintln(w)
	t := newTable(w, "PLAN", "QUOTA", "USED", "LEFT", "RESET", "STRIKES LEFT")
	for _, p := range plans {
		strikes := "-"
		if p.StrikesLeft != nil {
			strikes = strconv.Itoa(*p.StrikesLeft)
		}
		switch { // then there are no quotas
		case p.Error != "":
			t.row(p.Plan, p.Error)
		case p.Suspended:
			t.row(p.Plan, "suspended")
		case p.Unlimited:
			t.row(p.Plan, "unlimited")
		}
		for _, q := range p.Quotas {
			quota, used := quotaTexts(q)
			t.row(p.Plan, quota, used, q.Remaining, showTime(time.Unix(q.Reset, 0)), strikes)
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
			quota, used := quotaTexts(q)
			t.row(k.ID, k.Name, quota, used, q.Remaining, showTime(time.Unix(q.Reset, 0)))
		}
	}
	return t.flush()
}

// quotaTexts returns a quota, and how much of it is used.
func quotaTexts(q api.QuotaUsage) (quota string, used int64) {
	one := ratelimit.Quota{Limit: q.Limit, Window: time.Duration(q.WindowSeconds) * time.Second}
	switch {
	case q.Calendar != "":
		return fmt.Sprint(q.Limit, "/", q.Calendar), q.Limit - q.Remaining + q.Over
	case q.Burst > 0:
		return one.Smooth(q.Burst).String(), q.Burst - q.Remaining
	}
	return one.String(), q.Limit - q.Remaining + q.Over
}
