package main_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
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
		"fetch":    fetch,
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
//
// and the program fetch, which sends a request.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "capture": capture, "keyid": keyID, "sql": changeFile, "hostport": hostport,
			"serve": serveInScript, "end": endInScript,
		},
		Setup: func(e *testscript.Env) error {
			e.Values[processKey{}] = new(*process)
			e.Setenv(raceVar, raceOptions)
			return nil
		},
	})
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

func keyID(ts *testscript.TestScript, _ bool, args []string) {
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

// fetch is a program: it sends a request with a key, again and again until the
// response has the status that is wanted, and prints the body. A request that is
// sent when the time is over, or later, has to have it.
func fetch() {
	method := flag.String("X", http.MethodGet, "method")
	key := flag.String("key", "", "API key")
	body := flag.String("d", "", "body")
	status := flag.Int("status", 200, "status that is wanted")
	within := flag.Duration("within", 0, "time in which it has to come")
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		sent := time.Now()
		a, err := ask(ctx, *method, flag.Arg(0), *key, *body)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		case a.status == *status:
			os.Stdout.Write(a.body)
			return
		case sent.Sub(begin) >= *within:
			fmt.Fprintf(os.Stderr, "answered with %d, want %d\n%s", a.status, *status, a.body)
			os.Exit(1)
		}
	}
}
