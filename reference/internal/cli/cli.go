package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/animalstore/gatehouse/reference/internal/build"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/server"
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
	Check        checkCmd        `cmd:"" help:"Examine a SQLite database and the usage file."`
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
		defaultSignals() // a signal ends the other commands at once
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
	command := ""
	if e, ok := errors.AsType[*kong.ParseError](err); ok && e.Context.Selected() != nil {
		node := e.Context.Selected()
		word, unexpected := strings.CutPrefix(err.Error(), "unexpected argument ")
		if unexpected && node.Parent.DefaultCmd == node && !slices.Contains(args, node.Name) {
			// The word stands where the name of a command would, and was taken for an
			// argument of the default command.
			return o.failCommand(word, node.Parent)
		}
		command = " " + node.Path()
	}
	o.printError(errors.New(noValue.ReplaceAllString(err.Error(), ": needs a value$1")))
	o.say("Run \"petstore%s --help\" for the arguments.", command)
	return exitUsage
}

// failCommand reports a word that is not the name of a command of parent.
func (o output) failCommand(word string, parent *kong.Node) int {
	o.say("petstore: unknown command %s", word)
	o.say("Run \"%s --help\" for the commands.", strings.TrimSpace("petstore "+parent.Path()))
	return exitUsage
}

func (o output) fail(err error) int {
	o.printError(err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[server.SettingError](err); ok {
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

// table prints columns of text.
type table struct {
	w   *tabwriter.Writer
	out *bufio.Writer // tabwriter writes each cell by itself
}

func newTable(w io.Writer, columns ...any) table {
	out := bufio.NewWriter(w)
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), out}
	t.row(columns...)
	return t
}

func (t table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = showable(fmt.Sprint(cell))
	}
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

func (t table) flush() error { return cmp.Or(t.w.Flush(), t.out.Flush()) }

// show prints a list as JSON or as a table, or says that it is empty.
func show[T any](o output, asJSON bool, list []T, empty string, print func(io.Writer, []T) error) error {
	switch {
	case asJSON:
		return printJSON(o.out, list)
	case len(list) == 0:
		o.say("%s", empty)
		return nil
	}
	return print(o.out, list)
}

// showTime formats a time for people, to the second.
func showTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

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

func (c openapiCmd) Run(o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	document, err := openapi.New(settings.Document())
	if err != nil {
		return err
	}
	var b bytes.Buffer // indented for people and for diff
	if err := json.Indent(&b, document, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = b.WriteTo(o.out)
	return err
}
