package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/duration"
)

type plansCmd struct {
	JSON bool `help:"Print JSON."`
	configFlag
}

// Help is shown by --help.
func (plansCmd) Help() string {
	return `If a server would refuse the settings, also others than the plans, the command says why and
its exit code is 2.`
}

func (c plansCmd) Run(o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(o.out, plansJSON(settings))
	} else {
		err = printPlans(o.out, settings)
	}
	if err != nil {
		return err
	}
	// The plans are shown nevertheless: the environment of the server may have what is
	// missing, such as the admin token.
	if err := settings.Check(); err != nil {
		return usageError{err}
	}
	return nil
}

type planJSON struct {
	Name   string            `json:"name"`
	Quotas []ratelimit.Quota `json:"quotas,omitempty"`
	Custom bool              `json:"custom,omitempty"`

	Suspended bool `json:"suspended,omitempty"`
	Unlimited bool `json:"unlimited,omitempty"`
}

type plansAnswer struct {
	Plans     []planJSON        `json:"plans"`
	Anonymous []ratelimit.Quota `json:"anonymous"`
	Uncharged []ratelimit.Quota `json:"uncharged"`
	Penalty   *penaltyJSON      `json:"penalty,omitempty"` // nil: there are no bans
}

type penaltyJSON struct {
	Strikes int    `json:"strikes"`
	Grace   string `json:"grace"`
	Decay   string `json:"decay"`
	Ban     string `json:"ban"`
	Growth  int    `json:"growth"`
	Max     string `json:"max"`
	Forgive string `json:"forgive"`
}

func plansJSON(c *config.Config) plansAnswer {
	answer := plansAnswer{Anonymous: c.Anonymous.Quotas(), Uncharged: c.Uncharged.Quotas()}
	if p := c.Penalty; p.Strikes > 0 {
		answer.Penalty = &penaltyJSON{
			Strikes: p.Strikes, Grace: duration.Format(p.Grace), Decay: duration.Format(p.Decay),
			Ban: duration.Format(p.Ban), Growth: p.Growth, Max: duration.Format(p.Max), Forgive: duration.Format(p.Forgive),
		}
	}
	for _, p := range c.Plans {
		plan := planJSON{Name: p.Name, Custom: p.Fixed == nil, Suspended: p.Word == "suspended", Unlimited: p.Word == "unlimited"}
		if p.Fixed != nil {
			plan.Quotas = p.Fixed.Quotas()
		}
		answer.Plans = append(answer.Plans, plan)
	}
	return answer
}

func printPlans(w io.Writer, c *config.Config) error {
	t := newTable(w, "PLAN", "QUOTAS")
	for _, p := range c.Plans {
		switch p.Word {
		case "custom":
			t.row(p.Name, "custom: each key has its own")
		case "suspended":
			t.row(p.Name, "suspended: every request is refused")
		case "unlimited":
			t.row(p.Name, "unlimited: no request is counted")
		default:
			t.row(p.Name, quotasText(p.Fixed))
		}
	}
	t.row("(no key)", quotasText(c.Anonymous)+", by network")
	t.row("(uncharged)", quotasText(c.Uncharged)+", by owner or network")
	if err := t.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n"+penaltyText(c.Penalty))
	return err
}

func quotasText(p *ratelimit.Plan) string {
	var texts []string
	for _, q := range p.Quotas() {
		texts = append(texts, q.String())
	}
	return strings.Join(texts, ", ")
}

func penaltyText(p ratelimit.Penalty) string {
	if p.Strikes == 0 {
		return "Bans are turned off."
	}
	strikes := fmt.Sprintf("%d strikes start", p.Strikes)
	if p.Strikes == 1 {
		strikes = "1 strike starts"
	}
	further := fmt.Sprintf("Each further ban is %d times as long, up to %s;\n"+
		"each %s without a ban undoes one increase.", p.Growth, duration.Format(p.Max), duration.Format(p.Forgive))
	if p.Growth == 1 {
		further = "Further bans are as long."
	}
	return fmt.Sprintf("A client that keeps sending requests after a 429 collects strikes: one for each further 429,\n"+
		"except within %s of the first one. One strike is forgotten every %s.\n"+
		"More than %s a ban of %s. %s", duration.Format(p.Grace), duration.Format(p.Decay), strikes, duration.Format(p.Ban), further)
}
