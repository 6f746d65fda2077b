package cli

import (
	"os"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// configFlag is for commands that read only the settings file.
type configFlag struct {
	Config *string `placeholder:"FILE" help:"YAML file with settings ($$PETSTORE_CONFIG)."`
}

func (f configFlag) load() (*config.Config, error) {
	return load(config.Flags{Config: f.Config})
}

// databaseFlags are for commands that open the database.
type databaseFlags struct {
	configFlag
	Database *string `placeholder:"FILE|URL" help:"The database: a SQLite file or a postgres:// URL ($$PETSTORE_DATABASE)."`
}

func (f databaseFlags) load() (*config.Config, error) {
	return load(config.Flags{Config: f.Config, Database: f.Database})
}

// load reads the settings for a command that does not serve.
func load(flags config.Flags) (*config.Config, error) {
	return checked(func() (*config.Config, error) { return config.Read(flags, os.LookupEnv) })
}

// checked returns the settings that read reads, after the environment and the settings
// are checked.
func checked(read func() (*config.Config, error)) (*config.Config, error) {
	if err := config.CheckEnvironment(os.Environ()); err != nil {
		return nil, usageError{err}
	}
	c, err := read()
	if err != nil {
		return nil, usageError{err}
	}
	if err := c.CheckOperations(api.Deprecatable()...); err != nil {
		return nil, usageError{err}
	}
	return c, nil
}
