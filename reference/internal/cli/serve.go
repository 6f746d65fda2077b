package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/build"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/logging"
	"github.com/animalstore/gatehouse/reference/internal/server"
)

// The flags are config.FlagFields.
type serveCmd struct{ kong.Plugins }

// Help is shown by --help.
func (serveCmd) Help() string {
	return `Settings without a flag, such as the plans, are set in the YAML file;
petstore.example.yaml shows all settings with their defaults. A flag overrides the
environment, and the environment overrides the file. $PETSTORE_ADMIN_TOKEN_FILE,
$PETSTORE_DATABASE_FILE and $PETSTORE_REDIS_FILE name files with the values of secrets.

The log goes to standard output, as text on a terminal and as JSON elsewhere. If it is
not read fast enough, the server drops lines, logs how many, and keeps running. If the
database has never held an API key, the server creates one and shows it once on
standard error.

On SIGHUP, and when the settings file or the certificate changes, the server reads its
settings again and applies them, except those that need a restart. If it refuses them,
the settings in force stay, and the log says why.

On SIGTERM or SIGINT, the server finishes running requests, saves usage and stops. A
second signal stops it immediately.`
}

func (c serveCmd) Run(ctx context.Context, o output, hups hangUp) error {
	source := config.NewSource(config.FlagsOf(c.Plugins[0]), os.Environ())
	settings, err := checked(source.Load())
	if err != nil {
		return err
	}
	// Without this, a write to a pipe without a reader would end the process.
	signal.Ignore(syscall.SIGPIPE)
	log := logging.New(settings.Log, o.out)
	defer log.Close(flushTimeout)
	logger := log.Logger()
	logged := logSignal(ctx, logger)
	err = server.Run(ctx, settings, server.Options{
		Logger: logger, SetLevel: log.SetLevel, Notice: o.err,
		Source: source, HangUp: hups,
		Build: build.Read(),
	})
	logged()
	if err == nil {
		logger.Info("stopped")
	}
	return err
}

// flushTimeout bounds how long the server waits at its end for the log to be written.
const flushTimeout = 2 * time.Second

// logSignal logs why a context ends. If it has ended, wait waits until the line is
// logged.
func logSignal(ctx context.Context, logger *slog.Logger) (wait func()) {
	done := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(done)
		logger.Info("stopping; running requests are finished first", slog.Any("cause", context.Cause(ctx)))
	})
	return func() {
		if !forget() {
			<-done
		}
	}
}

// configFlag is for commands that read only the settings file.
type configFlag struct {
	Config *string `placeholder:"FILE" help:"YAML file with settings ($$PETSTORE_CONFIG)."`
}

func (f configFlag) load() (*config.Config, error) {
	return load(config.Flags{"config": f.Config})
}

// ProvideSettings makes the settings an argument of Run.
func (f configFlag) ProvideSettings() (*config.Config, error) { return f.load() }

// databaseFlags are for commands that open the database.
type databaseFlags struct {
	configFlag
	Database *string `placeholder:"FILE|URL" help:"The database: a SQLite file or a postgres:// URL ($$PETSTORE_DATABASE)."`
}

func (f databaseFlags) load() (*config.Config, error) {
	return load(config.Flags{"config": f.Config, "database": f.Database})
}

// ProvideSettings makes the settings an argument of Run.
func (f databaseFlags) ProvideSettings() (*config.Config, error) { return f.load() }

// load reads the settings for a command that does not serve.
func load(flags config.Flags) (*config.Config, error) {
	return checked(config.Read(flags, os.Environ()))
}

// checked returns settings that were read, if their operations exist. A mistake in the settings
// is a usage error.
func checked(c *config.Config, err error) (*config.Config, error) {
	if err == nil {
		err = c.CheckOperations(api.Deprecatable(), api.Operations())
	}
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}
