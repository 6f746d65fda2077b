package main_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/animalstore/gatehouse/reference/internal/cli"
)

// Tests run the program as it is: the test binary is petstore, if it is started
// under that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"petstore": func() { os.Exit(cli.Run(os.Args[1:])) },
	})
}

// The scripts of testdata/script say what the command line does. They have a few
// commands of their own:
//
//	code N PROGRAM ARG...   runs a program that must end with the exit code N
//	capture NAME            sets a variable to the last standard output
//	keyid NAME OWNER        sets a variable to the ID of the owner's latest key
//	sql FILE STATEMENT      changes a database file without petstore
//	hostport NAME           cuts the scheme off a variable that holds a URL
//	serve ARG...            starts petstore serve, and sets API and ADMIN to its base
//	                        URLs and KEY to the first key; its log goes to serve.log,
//	                        its standard error to serve.err
//	end                     ends it by SIGTERM; it must exit with 0
//	fetch FLAG... URL       sends a request, and prints the body of the response
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "capture": capture, "keyid": scriptKeyID, "sql": changeFile, "hostport": hostport,
			"serve": serveInScript, "end": endInScript, "fetch": fetch,
		},
		Setup: func(e *testscript.Env) error {
			e.Values[processKey{}] = new(*process)
			e.Setenv(raceVar, raceOptions)
			return nil
		},
	})
}

// The comment of package main has the commands in the order of the help.
func TestPackageCommentListsTheCommands(t *testing.T) {
	t.Parallel()
	words := func(lines, text string) (commands []string) {
		for _, m := range regexp.MustCompile(lines).FindAllStringSubmatch(text, -1) {
			if len(commands) == 0 || commands[len(commands)-1] != m[1] {
				commands = append(commands, m[1])
			}
		}
		return commands
	}
	_, help, _ := strings.Cut(petstore(t, t.TempDir(), "--help"), "Commands:")
	want := append(words(`(?m)^  ([a-z]+) `, help), "help")
	if got := words(`(?m)^//\tpetstore ([a-z]+) `, readFile(t, "main.go")); !slices.Equal(got, want) {
		t.Errorf("the comment of main.go has the commands %q, want %q", got, want)
	}
}

func code(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: code N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("code: %v", err)
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func capture(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

func scriptKeyID(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("petstore", "keys", "list", "--json"))
	var keys []struct{ ID, Owner string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &keys))
	for _, k := range slices.Backward(keys) {
		if k.Owner == args[1] {
			ts.Setenv(args[0], k.ID)
			return
		}
	}
	ts.Fatalf("there is no key of %s", args[1])
}

func changeFile(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0])) // the driver of package internal/sqlite
	ts.Check(err)
	_, err = db.Exec(args[1])
	ts.Check(errors.Join(err, db.Close()))
}

func hostport(ts *testscript.TestScript, _ bool, args []string) {
	_, rest, _ := strings.Cut(ts.Getenv(args[0]), "://")
	ts.Setenv(args[0], rest)
}

type processKey struct{}

func serveInScript(ts *testscript.TestScript, neg bool, args []string) {
	env := environment()
	for _, name := range []string{"PETSTORE_CONFIG", "PETSTORE_ADMIN_TOKEN", "PETSTORE_DATABASE"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	p, err := launch(ts.MkAbs("."), env, args...)
	ts.Check(err)
	*ts.Value(processKey{}).(**process) = p
	ts.Defer(p.kill)
	ts.Setenv("API", p.api)
	ts.Setenv("ADMIN", p.admin)
	if first, err := readFirstKey(p.notice); err == nil {
		ts.Setenv("KEY", first.key)
	}
}

func endInScript(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check((*ts.Value(processKey{}).(**process)).stop())
}

// fetch sends a request with a key, again and again until the response has the status that is
// wanted, and prints the body. A request that is sent when the time is over, or later, has to
// have it.
func fetch(ts *testscript.TestScript, _ bool, args []string) {
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	method := flags.String("X", http.MethodGet, "method")
	key := flags.String("key", "", "API key")
	body := flags.String("d", "", "body")
	status := flags.Int("status", 200, "status that is wanted")
	within := flags.Duration("within", 0, "time in which it has to come")
	ts.Check(flags.Parse(args))

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		sent := time.Now()
		a, err := ask(ctx, *method, flags.Arg(0), *key, *body)
		ts.Check(err)
		if a.status == *status {
			ts.Stdout().Write(a.body)
			return
		}
		if sent.Sub(begin) >= *within {
			ts.Fatalf("answered with %d, want %d\n%s", a.status, *status, a.body)
		}
	}
}
