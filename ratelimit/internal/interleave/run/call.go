package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var ctx = context.Background()

// A limiter is what calls are made on: the engine, or the model.
type limiter interface {
	ratelimit.Limiter
	engine.MultiTaker
	engine.Peeker
	Reset(ctx context.Context, subject string) error
	engine.Adjuster
	engine.Banner
}

// A call is one call of a case.
type call struct {
	text    string // as the case has it
	what    string // the first word of it
	subject string
	charges []ratelimit.Charge // of take, all, peek and charge
	moves   time.Duration      // by which the clock moves
	evicts  []string           // subjects, any one of which the engine may forget for this one
}

// An answer is what a call returned. It can be compared.
type answer struct {
	d    ratelimit.Decision
	more [2]ratelimit.Decision // of all, after the first
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
	var first ratelimit.Charge
	if len(c.charges) > 0 {
		first = c.charges[0]
	}
	var err error
	switch c.what {
	case "take":
		a.d, err = l.Take(ctx, c.subject, first.Plan, first.Cost)
	case "all":
		decisions := make([]ratelimit.Decision, len(c.charges))
		err = l.TakeAll(ctx, c.charges, decisions)
		a.d = decisions[0]
		copy(a.more[:], decisions[1:])
	case "peek":
		a.d, err = l.Peek(ctx, c.subject, first.Plan)
	case "reset":
		err = l.Reset(ctx, c.subject)
	case "refund": // of the last request of the set-up that was allowed
		d := given[c.subject]
		err = l.Adjust(ctx, c.subject, &d, 0, "")
	case "charge":
		d := engine.Uncounted(first.Plan, 0, start)
		err = l.Adjust(ctx, c.subject, &d, first.Cost, "")
	case "ban":
		err = l.Ban(ctx, c.subject, time.Minute, "")
	case "unban":
		a.text = "there was no ban"
		var unbanned bool
		if unbanned, err = l.Unban(ctx, c.subject); unbanned {
			a.text = "there was a ban"
		}
	case "bans":
		var all []engine.Ban
		all, err = l.Bans(ctx)
		a.text = list(all)
	}
	if err != nil {
		a.err = err.Error()
	}
	for _, d := range []*ratelimit.Decision{&a.d, &a.more[0], &a.more[1]} {
		if d.Receipt.BanReason != nil {
			d.Receipt.BanReason = reasons[d.BanReason()]
		}
	}
	return a
}

// reasons make answers of the engine and of the model comparable. The cases have no others.
var reasons = map[string]*string{engine.ReasonStrikes: new(engine.ReasonStrikes), engine.ReasonByHand: new(engine.ReasonByHand)}

func list(bans []engine.Ban) string {
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
