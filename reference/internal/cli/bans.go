package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

type bansCmd struct {
	List  bansListCmd  `cmd:"" help:"List the bans in force."`
	Unban bansUnbanCmd `cmd:"" aliases:"lift" help:"Unban an owner or a network, and delete its strikes and earlier bans."`
}

// adminFlags are for commands that call a running server.
type adminFlags struct {
	configFlag
	AdminListen *string `placeholder:"HOST:PORT" help:"Address of the server's admin listener ($$PETSTORE_ADMIN_LISTEN). If it has a token, set $$PETSTORE_ADMIN_TOKEN, or admin_token in the settings file."`
}

func (f adminFlags) client() (admin.Client, error) {
	settings, err := load(config.Read, config.Flags{Config: f.Config, AdminListen: f.AdminListen})
	if err != nil {
		return admin.Client{}, err
	}
	if settings.AdminListen == "" {
		return admin.Client{}, usageError{settings.Errorf("admin_listen", "the admin listener is turned off, and this command needs it; give its address with --admin-listen")}
	}
	return admin.Client{Addr: settings.AdminListen, Token: settings.AdminToken.Reveal()}, nil
}

type bansListCmd struct {
	JSON bool `help:"Print JSON."`
	adminFlags
}

func (c bansListCmd) Run(ctx context.Context, o output) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	bans, err := client.Bans(ctx)
	if err != nil {
		return explainAdmin(err)
	}
	if c.JSON {
		return printJSON(o.out, bans)
	}
	if len(bans) == 0 {
		o.say("There are no bans.")
		return nil
	}
	t := newTable(o.out, "OWNER", "NETWORK", "ENDS", "LEVEL")
	for _, b := range bans {
		t.row(orDash(b.Owner), orDash(b.Network), showTime(b.Ends), strconv.Itoa(b.Level))
	}
	return t.flush()
}

type bansUnbanCmd struct {
	Owner   string `arg:"" optional:"" help:"Owner of the banned keys, as in petstore bans list."`
	Network string `placeholder:"ADDRESS" help:"Unban the network of this address instead of an owner. The ban of a network affects only requests without a valid key."`
	adminFlags
}

func (c bansUnbanCmd) Run(ctx context.Context, o output) error {
	if (c.Owner == "") == (c.Network == "") {
		return usageError{errors.New("bans unban: name either an owner or a network, as in bans unban ada or bans unban --network 192.0.2.1")}
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	name, unban := c.Owner, client.UnbanOwner
	if c.Network != "" {
		name, unban = c.Network, client.UnbanNetwork
	}
	was, err := unban(ctx, name)
	if err != nil {
		return explainAdmin(err)
	}
	if !was {
		return fmt.Errorf("%q is not banned; petstore bans list shows the bans", name)
	}
	o.say("Unbanned %q.", name)
	return nil
}

// explainAdmin adds to an error what to do.
func explainAdmin(err error) error {
	switch {
	case errors.Is(err, admin.ErrToken):
		return fmt.Errorf("%w; set PETSTORE_ADMIN_TOKEN, or admin_token in the settings file", err)
	case errors.Is(err, admin.ErrNoAnswer):
		return fmt.Errorf("%w; start one with petstore serve, or name its admin listener with --admin-listen", err)
	default:
		return err
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
