package cases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A limiter is what calls are made on: the engine, or the model.
type limiter interface {
	ratelimit.Limiter
	engine.MultiTaker
	engine.Peeker
	Reset(ctx context.Context, subject string) error
	engine.Adjuster
	ratelimit.Banner
}

// A call is one call of a case.
type call struct {
	what    string // "take", "takeall", "peek", "reset", "refund", "charge", "ban", "unban", "bans", "save", "clock"
	subject string
	plan    *ratelimit.Plan
	n       int64              // cost, or units for each quota
	length  time.Duration      // of the ban, or by which the clock moves
	more    []ratelimit.Charge // of takeall, after the first
	evicts  []string           // subjects, any one of which the engine may forget for this one
}

func take(subject string, plan *ratelimit.Plan) call { return cost(1, subject, plan) }
func cost(n int64, subject string, plan *ratelimit.Plan) call {
	return call{what: "take", subject: subject, plan: plan, n: n}
}

// takeAll takes one unit of the first subject, and what the others say.
func takeAll(subject string, plan *ratelimit.Plan, more ...ratelimit.Charge) call {
	return call{what: "takeall", subject: subject, plan: plan, n: 1, more: more}
}
func peek(subject string, plan *ratelimit.Plan) call {
	return call{what: "peek", subject: subject, plan: plan}
}
func charge(n int64, subject string, plan *ratelimit.Plan) call {
	return call{what: "charge", subject: subject, plan: plan, n: n}
}
func reset(subject string) call { return call{what: "reset", subject: subject} }
func unban(subject string) call { return call{what: "unban", subject: subject} }
func ban(subject string) call   { return call{what: "ban", subject: subject, length: time.Minute} }

// refund gives back what the last take of the set-up that was allowed to the
// subject was charged.
func refund(subject string) call { return call{what: "refund", subject: subject} }

func clock(by time.Duration) call { return call{what: "clock", length: by} }

var (
	bans = call{what: "bans"}
	save = call{what: "save"}
)

func (c call) evicting(subjects ...string) call {
	c.evicts = subjects
	return c
}

func (c call) String() string {
	switch {
	case c.what == "takeall":
		text := fmt.Sprintf("take all: %d of %s under %v", c.n, c.subject, c.plan)
		for _, m := range c.more {
			text += fmt.Sprintf(", %d of %s under %v", m.Cost, m.Subject, m.Plan)
		}
		return text
	case c.what == "take" && c.n != 1, c.what == "charge":
		return fmt.Sprintf("%s %d of %s under %v", c.what, c.n, c.subject, c.plan)
	case c.plan != nil:
		return fmt.Sprintf("%s %s under %v", c.what, c.subject, c.plan)
	case c.what == "clock":
		return fmt.Sprintf("clock moves by %v", c.length)
	}
	return strings.TrimSpace(c.what + " " + c.subject)
}

// An answer is what a call returned. It can be compared.
type answer struct {
	d    ratelimit.Decision
	more [2]ratelimit.Decision // of takeall, after the first
	text string                // of unban and bans
	err  string
}

func (a answer) String() string {
	switch {
	case a.err != "":
		return "error: " + a.err
	case a.more[0].Plan != nil:
		return answer{d: a.d}.String() + "; " + answer{d: a.more[0]}.String() + "; " + answer{d: a.more[1]}.String()
	case a.d.Plan != nil:
		text := fmt.Sprintf("%v, remaining", a.d.Outcome)
		for i := range engine.Of(a.d.Plan).Len() {
			text += fmt.Sprintf(" %d to %s", a.d.States[i].Remaining, unix(a.d.States[i].Reset))
		}
		text += fmt.Sprintf(", %d strikes left, at %s", a.d.StrikesLeft, time.Unix(0, a.d.Time).UTC().Format("15:04:05.000"))
		if a.d.Struck {
			text += ", a strike"
		}
		if a.d.BanEnds != 0 {
			text += ", ban to " + unix(a.d.BanEnds)
		}
		return text
	case a.text != "":
		return a.text
	}
	return "done"
}

func unix(seconds int64) string { return time.Unix(seconds, 0).UTC().Format("15:04:05") }

// do makes the call. Given are the decisions of the set-up.
func (c call) do(l limiter, given map[string]ratelimit.Decision) (a answer) {
	ctx := context.Background()
	var err error
	switch c.what {
	case "take":
		a.d, err = l.Take(ctx, c.subject, c.plan, c.n)
	case "takeall":
		charges := append([]ratelimit.Charge{{Subject: c.subject, Plan: c.plan, Cost: c.n}}, c.more...)
		decisions := make([]ratelimit.Decision, len(charges))
		err = l.TakeAll(ctx, charges, decisions)
		a.d = decisions[0]
		copy(a.more[:], decisions[1:])
	case "peek":
		a.d, err = l.Peek(ctx, c.subject, c.plan)
	case "reset":
		err = l.Reset(ctx, c.subject)
	case "refund":
		d := given[c.subject]
		err = l.Adjust(ctx, c.subject, &d, 0, "")
	case "charge":
		d := engine.Uncounted(c.plan, 0, start)
		err = l.Adjust(ctx, c.subject, &d, c.n, "")
	case "ban":
		err = l.Ban(ctx, c.subject, c.length)
	case "unban":
		a.text = "there was no ban"
		var unbanned bool
		if unbanned, err = l.Unban(ctx, c.subject); unbanned {
			a.text = "there was a ban"
		}
	case "bans":
		var all []ratelimit.Ban
		all, err = l.Bans(ctx)
		a.text = list(all)
	}
	if err != nil {
		a.err = err.Error()
	}
	return a
}

func list(bans []ratelimit.Ban) string {
	if len(bans) == 0 {
		return "no bans"
	}
	var lines []string
	for _, b := range bans {
		lines = append(lines, fmt.Sprintf("%s to %s, level %d", b.Subject, unix(b.Ends.Unix()), b.Level))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// advance returns by how much a call moves the clock.
func (c call) advance() time.Duration {
	if c.what == "clock" {
		return c.length
	}
	return 0
}
