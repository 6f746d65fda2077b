package cli

import (
	"os"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// configFlag is for commands that read nothing but the settings file.
type configFlag struct {
	Config *string `placeholder:"FILE" help:"Read settings from this YAML file ($$PETSTORE_CONFIG)."`
}

func (f configFlag) load() (*config.Config, error) {
	return load(config.Read, config.Flags{Config: f.Config})
}

// databaseFlags are for commands that work on the database.
type databaseFlags struct {
	configFlag
	Database *string `placeholder:"FILE" help:"Keys are in this SQLite file ($$PETSTORE_DATABASE)."`
}

func (f databaseFlags) load() (*config.Config, error) {
	return load(config.Read, config.Flags{Config: f.Config, Database: f.Database})
}

// load reads the settings by config.Load or config.Read.
func load(by func(config.Flags, func(string) (string, bool)) (*config.Config, error), flags config.Flags) (*config.Config, error) {
	if err := config.CheckEnvironment(os.Environ()); err != nil {
		return nil, usageError{err}
	}
	c, err := by(flags, os.LookupEnv)
	if err != nil {
		return nil, usageError{err}
	}
	if err := c.CheckOperations(api.Deprecatable()...); err != nil {
		return nil, usageError{err}
	}
	return c, nil
}
