package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/duration"
)

type bansCmd struct {
	List  bansListCmd  `cmd:"" default:"withargs" help:"List the bans in force, as petstore bans alone does."`
	Ban   bansBanCmd   `cmd:"" help:"Ban an owner or a network for a time."`
	Unban bansUnbanCmd `cmd:"" help:"Unban an owner or a network, and delete its strikes and earlier bans."`
}

type bansListCmd struct {
	JSON bool `help:"Print JSON."`
	adminFlags
}

// Help is shown by --help.
func (bansListCmd) Help() string {
	return `LEVEL counts bans that followed each other soon, each longer than the one before; 0 is a
first ban by hand. REASON is "strikes", "by hand" or the text of the operator.`
}

func (c bansListCmd) Run(ctx context.Context, o output, client admin.Client) error {
	bans, err := client.Bans(ctx)
	if err != nil {
		return err
	}
	return show(o, c.JSON, bans, "There are no bans.", addBan, "OWNER", "NETWORK", "ENDS", "LEVEL", "REASON")
}

func addBan(t table, b admin.Ban) {
	t.row(cmp.Or(b.Owner, "-"), cmp.Or(b.Network, "-"), showTime(b.Ends), b.Level, b.Reason)
}

// banTarget is an owner or a network.
type banTarget struct {
	Owner   text   `arg:"" optional:"" help:"Owner of the keys, as in petstore keys list."`
	Network string `placeholder:"ADDRESS" help:"The network of this address instead of an owner. The ban of a network affects only requests without a valid key."`
}

func (t banTarget) check(command, example string) error {
	if (t.Owner == "") == (t.Network == "") {
		return usageError{fmt.Errorf("bans %[1]s: name either an owner or a network, as in bans %[1]s ada%[2]s or bans %[1]s --network 192.0.2.1%[2]s", command, example)}
	}
	return nil
}

// name returns the owner or the network.
func (t banTarget) name() string { return string(t.Owner) + t.Network }

type bansBanCmd struct {
	banTarget
	For    period `required:"" placeholder:"DURATION" help:"Length of the ban from now, such as 1h or 30d, from 1s to 8784h."`
	Reason text   `placeholder:"TEXT" help:"What the client reads after \"temporarily banned: \", at most 200 bytes. Without it the client reads that the operator has banned it."`
	JSON   bool   `help:"Print the ban as JSON."`
	adminFlags
}

// Help is shown by --help.
func (bansBanCmd) Help() string {
	return `Requests of the owner are answered with 429 until the ban ends, except GET /v1/usage
and requests with a key whose plan is unlimited. A new ban replaces one that is in force,
so a ban can be made longer or shorter.`
}

func (c bansBanCmd) Run(ctx context.Context, o output, client admin.Client) error {
	if err := c.check("ban", " --for 1h"); err != nil {
		return err
	}
	length := time.Duration(c.For)
	if length < time.Second || length > fixedwindow.MaxLength || length%time.Second != 0 {
		return usageError{fmt.Errorf("bans ban: --for must be whole seconds from 1s to %s, got %v", duration.Format(fixedwindow.MaxLength), length)}
	}
	b, err := client.Ban(ctx, admin.NewBan{Owner: string(c.Owner), Network: c.Network, Seconds: int64(length / time.Second), Reason: string(c.Reason)})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(o.out, b)
	}
	// The network of the address, such as its /64.
	o.say("Banned %q until %s.", b.Owner+b.Network, showTime(b.Ends))
	return nil
}

type bansUnbanCmd struct {
	banTarget
	adminFlags
}

func (c bansUnbanCmd) Run(ctx context.Context, o output, client admin.Client) error {
	if err := c.check("unban", ""); err != nil {
		return err
	}
	was, err := client.Unban(ctx, string(c.Owner), c.Network)
	if err != nil {
		return err
	}
	if !was {
		o.say("%q is not banned. Its strikes and earlier bans, if any, are deleted.", c.name())
		return nil
	}
	o.say("Unbanned %q.", c.name())
	return nil
}
