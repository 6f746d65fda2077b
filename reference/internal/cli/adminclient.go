package cli

import (
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/reference/internal/adminapi"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// adminFlags are for commands that call a running server.
type adminFlags struct {
	configFlag
	AdminListen *string `placeholder:"HOST:PORT" help:"Address of the server's admin listener ($$PETSTORE_ADMIN_LISTEN). If it has a token, set $$PETSTORE_ADMIN_TOKEN, or admin_token in the settings file."`
}

func (f adminFlags) client() (adminapi.Client, error) {
	settings, err := load(config.Flags{Config: f.Config, AdminListen: f.AdminListen})
	if err != nil {
		return adminapi.Client{}, err
	}
	return adminClient(settings)
}

func adminClient(settings *config.Config) (adminapi.Client, error) {
	if settings.AdminListen == "" {
		return adminapi.Client{}, usageError{settings.Errorf("admin_listen", "the admin listener is turned off, and this command needs it; give its address with --admin-listen")}
	}
	return adminapi.Client{Addr: settings.AdminListen, Token: settings.AdminToken.Reveal()}, nil
}

// explainAdmin adds to an error what to do.
func explainAdmin(err error) error {
	switch {
	case errors.Is(err, adminapi.ErrToken):
		return fmt.Errorf("%w; set PETSTORE_ADMIN_TOKEN, or admin_token in the settings file", err)
	case errors.Is(err, adminapi.ErrNoAnswer):
		return fmt.Errorf("%w; start one with petstore serve, or name its admin listener with --admin-listen", err)
	default:
		return err
	}
}
