package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// adminFlags are for commands that call a running server.
type adminFlags struct {
	configFlag
	AdminListen *string `placeholder:"HOST:PORT" help:"Address of the server's admin listener ($$PETSTORE_ADMIN_LISTEN). If it has a token, set $$PETSTORE_ADMIN_TOKEN, or admin_token in the settings file."`
}

// ProvideClient makes the client of the server an argument of Run. It only warns of mistakes in
// other settings: a check of the server's health must not fail because of them.
func (f adminFlags) ProvideClient() (admin.Client, error) {
	settings, err := config.Read(config.Flags{"config": f.Config, "admin_listen": f.AdminListen}, os.Environ())
	switch {
	case settings == nil, config.IsAbout(err, "admin_listen", "admin_token"):
		return admin.Client{}, usageError{err}
	case err != nil: // a running server has other settings in force
		output{os.Stdout, os.Stderr}.printError(fmt.Errorf("warning: the settings have mistakes: %w", err))
	}
	if settings.AdminListen == "" {
		return admin.Client{}, usageError{settings.Errorf("admin_listen", "the admin listener is turned off, and this command needs it; give its address with --admin-listen")}
	}
	return admin.Client{Addr: settings.AdminListen, Token: settings.AdminToken}, nil
}

type deprecationsCmd struct {
	JSON bool `help:"Print JSON."`
	adminFlags
}

// Help is shown by --help.
func (deprecationsCmd) Help() string {
	return `A DAY is the number of requests a day in the last seven days. The owners with requests
there are those to write to before the sunset, when the operation is removed.`
}

func (c deprecationsCmd) Run(ctx context.Context, o output, client admin.Client) error {
	list, err := client.Deprecations(ctx)
	if err != nil {
		return err
	}
	return show(o, c.JSON, list, "No operation is deprecated.", addDeprecation, "OPERATION", "SUNSET", "DAYS LEFT", "OWNER", "REQUESTS", "A DAY", "LAST")
}

// addDeprecation adds a row for each owner.
func addDeprecation(t table, d admin.Deprecation) {
	sunset, days := "-", "-"
	if d.DaysLeft != nil {
		sunset, days = d.Sunset.UTC().Format(time.DateOnly), fmt.Sprint(*d.DaysLeft)
	}
	if len(d.Owners) == 0 {
		t.row(d.Operation, sunset, days, "-", "0", "0.0", "-")
	}
	for _, u := range d.Owners {
		t.row(d.Operation, sunset, days, u.Owner, u.Requests, fmt.Sprintf("%.1f", u.PerDay), showTime(u.Last))
	}
}

type healthCmd struct {
	adminFlags
	Ready bool `help:"Ask whether the server is ready for requests, instead of whether the process answers."`
}

// Help is shown by --help.
func (healthCmd) Help() string {
	return `The exit code is 0 if the server answers, and with --ready if it is ready; otherwise 1.
A health check that restarts the server must not have --ready, because a restart does
not repair a database. With --ready, the answer also says why a running server refuses
its settings file or certificate, if it does.`
}

func (c healthCmd) Run(ctx context.Context, o output, client admin.Client) error {
	if !c.Ready {
		if err := client.Health(ctx); err != nil {
			return err
		}
		fmt.Fprintln(o.out, "ok")
		return nil
	}
	r, err := client.Readiness(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Checks)) {
		fmt.Fprintf(o.out, "%s: %s\n", name, escape(r.Checks[name]))
	}
	if client.Token == "" && slices.Contains(slices.Collect(maps.Values(r.Checks)), "failing") {
		o.say("To see why a check fails, set PETSTORE_ADMIN_TOKEN or PETSTORE_ADMIN_TOKEN_FILE.")
	}
	if !r.Ready {
		return errors.New("the server is not ready")
	}
	return nil
}
