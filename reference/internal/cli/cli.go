// Package cli is the command line of petstore.
//
//	os.Exit(cli.Run(os.Args[1:]))
//
// Standard output gets only the result of a command, so that it can be piped: a key,
// a table, JSON, the log of the server. Messages go to standard error.
//
// Exit codes:
//
//	0  success
//	1  failure
//	2  usage error, on the command line, in the environment or in the settings file;
//	   nothing was done
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/animalstore/gatehouse/reference/internal/build"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/duration"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/server"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// The exit codes.
const (
	exitDone = iota
	exitFailure
	exitUsage
)

const description = "The pets API: a server, and the tools to run it."

type commands struct {
	Serve        serveCmd        `cmd:"" default:"withargs" help:"Run the server. This is the default command."`
	Keys         keysCmd         `cmd:"" help:"Create, list, revoke and rotate API keys."`
	Bans         bansCmd         `cmd:"" help:"List, start and end bans on a running server."`
	Usage        usageCmd        `cmd:"" help:"Show what an owner has left, and its requests by day."`
	Deprecations deprecationsCmd `cmd:"" help:"Show the deprecated operations, and the owners that still use them."`
	Audit        auditCmd        `cmd:"" help:"Show the changes of keys and bans, and the actor of each."`
	Health       healthCmd       `cmd:"" help:"Ask a running server whether it works. For health checks."`
	Backup       backupCmd       `cmd:"" help:"Copy a SQLite database to a file while servers run."`
	Restore      restoreCmd      `cmd:"" help:"Replace a SQLite database by a backup. Revoked keys stay revoked."`
	Migrate      migrateCmd      `cmd:"" help:"Create or upgrade the tables of the database."`
	Import       importCmd       `cmd:"" help:"Copy a SQLite file into an empty PostgreSQL database."`
	Plans        plansCmd        `cmd:"" help:"Show the plans in the settings, and check the settings."`
	OpenAPI      openapiCmd      `cmd:"" name:"openapi" help:"Print the OpenAPI document of the API."`
	Version      versionCmd      `cmd:"" help:"Print the version, and what it was built from."`
}

// output is where commands write.
type output struct {
	out *os.File  // the result of the command
	err io.Writer // messages
}

// say writes a message, which is not a result.
func (o output) say(format string, args ...any) { fmt.Fprintf(o.err, format+"\n", args...) }

// usageError is a mistake in the command line, the environment or the settings.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Run runs the command in args, which do not include the program's name, and returns
// the exit code. Help ends the process.
func Run(args []string) int {
	// First of all, because a signal during the start must also end the server with 0.
	ctx, hups := untilSignal(), catchHangUp()
	o := output{os.Stdout, os.Stderr}
	parser, err := kong.New(&commands{Serve: serveCmd{kong.Plugins{config.FlagFields()}}},
		kong.Name("petstore"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(o, hups),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return o.fail(err)
	}
	parser.Model.HelpFlag.Help = "Show this help."
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		// The parser would put U+FFFD in place of some bytes, so that two owners would be one.
		return o.fail(usageError{fmt.Errorf("argument %q is not UTF-8", args[i])})
	}
	switch {
	case len(args) > 0 && args[0] == "help": // petstore help keys create
		args = append(slices.Clone(args[1:]), "--help")
	case slices.Equal(args, []string{"--version"}):
		args = []string{"version"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return o.failParse(err, args)
	}
	if command.Command() != "serve" {
		defaultSignals() // a signal ends the other commands immediately
		if ctx.Err() != nil {
			return o.fail(context.Cause(ctx))
		}
	}
	if err := command.Run(); err != nil {
		return o.fail(err)
	}
	return exitDone
}

// noValue is how kong says that a flag has no value, or another flag in place of one.
var noValue = regexp.MustCompile(`: expected \w+ value but got ".*" \([^)]+\)(; perhaps try .*)?$`)

// failParse reports arguments that cannot be parsed.
func (o output) failParse(err error, args []string) int {
	text, command, what := noValue.ReplaceAllString(err.Error(), ": needs a value$1"), "petstore", "arguments"
	if e, ok := errors.AsType[*kong.ParseError](err); ok && e.Context.Selected() != nil {
		node := e.Context.Selected()
		word, unexpected := strings.CutPrefix(text, "unexpected argument ")
		if unexpected && node.Parent.DefaultCmd == node && !slices.Contains(args, node.Name) {
			// The word stands where the name of a command would, and was taken for an
			// argument of the default command.
			text, what, node = "unknown command "+word, "commands", node.Parent
		}
		command = strings.TrimSpace("petstore " + node.Path())
	}
	o.printError(errors.New(text))
	o.say("Run \"%s --help\" for the %s.", command, what)
	return exitUsage
}

func (o output) fail(err error) int {
	o.printError(err)
	_, usage := errors.AsType[usageError](err)
	_, setting := errors.AsType[server.SettingError](err)
	if usage || setting {
		return exitUsage
	}
	return exitFailure
}

// printError writes each line of an error after the name of the program.
func (o output) printError(err error) {
	for line := range strings.Lines(err.Error()) {
		o.say("petstore: %s", escape(strings.TrimSuffix(line, "\n")))
	}
}

// A text is a name or an owner in the command line, as [store.CheckText] has it.
type text string

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *text) UnmarshalText(b []byte) error {
	*t = text(b)
	return store.CheckText(string(b))
}

// A period is a duration in the command line that is not negative, such as 24h or 30d.
type period time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *period) UnmarshalText(b []byte) error {
	d, err := duration.Parse(string(b))
	switch {
	case err != nil:
		return fmt.Errorf("%q must be a duration such as 24h or 30d", b)
	case d < 0:
		return fmt.Errorf("must not be negative, got %v", d)
	}
	*p = period(d)
	return nil
}

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

func (c versionCmd) Run(o output) error {
	info := build.Read()
	if c.JSON {
		return printJSON(o.out, info)
	}
	_, err := fmt.Fprintln(o.out, "petstore "+info.String())
	return err
}

type openapiCmd struct{ configFlag }

// Help is shown by --help.
func (openapiCmd) Help() string {
	return "The settings determine the servers of the document, and which operations it marks as deprecated, experimental or beta."
}

func (openapiCmd) Run(o output, settings *config.Config) error {
	document, err := openapi.New(settings.Document())
	if err != nil {
		return err
	}
	return printJSON(o.out, json.RawMessage(document)) // indented for people and for diff
}
