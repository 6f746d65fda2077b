package cli

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/duration"
)

type plansCmd struct{ configFlag }

// Help is shown by --help.
func (plansCmd) Help() string {
	return `If a server would refuse the settings, also others than the plans, the command says why and
its exit code is 2.`
}

func (plansCmd) Run(o output, settings *config.Config) error {
	if err := printPlans(o.out, settings); err != nil {
		return err
	}
	// The plans are shown nevertheless: the environment of the server may have what is
	// missing, such as the admin token.
	err := settings.Check()
	if err == nil && settings.TLS() {
		if _, failure := tls.LoadX509KeyPair(settings.HTTP.CertFile, settings.HTTP.KeyFile); failure != nil {
			err = settings.Errorf("tls_cert", "%w", failure)
		}
	}
	if err != nil {
		return usageError{err}
	}
	return nil
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
	return fmt.Sprintf("A client that keeps sending requests after a 429 collects strikes: one for each further 429,\n"+
		"except within %s of the first one. One strike is forgotten every %s.\n"+
		"After more than %d a ban of %s starts. Each further ban is %d times as long, up to %s;\n"+
		"each %s without a ban undoes one increase.", duration.Format(p.Grace), duration.Format(p.Decay),
		p.Strikes, duration.Format(p.Ban), p.Growth, duration.Format(p.Max), duration.Format(p.Forgive))
}
