package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

type healthCmd struct {
	adminFlags
	Ready bool `help:"Ask whether the server is ready for requests, instead of whether the process answers."`
}

// Help is shown by --help.
func (healthCmd) Help() string {
	return `The exit code is 0 if the server answers, and with --ready if it is ready; otherwise 1.
A health check that restarts the server must not have --ready, because a restart does
not repair a database.`
}

func (c healthCmd) Run(ctx context.Context, o output) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if !c.Ready {
		if err := client.Health(ctx); err != nil {
			return explainAdmin(err)
		}
		fmt.Fprintln(o.out, "ok")
		return nil
	}
	r, err := client.Readiness(ctx)
	if err != nil {
		return explainAdmin(err)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Checks)) {
		fmt.Fprintf(o.out, "%s: %s\n", name, escape(r.Checks[name]))
	}
	if !r.Ready {
		return errors.New("the server is not ready")
	}
	return nil
}
