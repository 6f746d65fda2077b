// Package script runs what a client of an example does, testdata/script.txtar, in the
// language of [testscript]. Time comes from testing/synctest: it begins at 2026-12-01
// 12:00:30 UTC, and sleep takes no time.
//
//	curl 200 -u ann: /report      # the status, then what curl takes
//	curl 429 3 -u ann: /report    # three times
//	stdout 'limit of 3 requests'
//	sleep 1m
//
// [testscript]: https://pkg.go.dev/github.com/rogpeppe/go-internal/testscript
package script

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var start = time.Date(2026, time.December, 1, 12, 0, 30, 0, time.UTC)

// Run runs the script against a service that newHandler makes. The script can use the
// variables, such as "KEY=demo_17".
func Run(t *testing.T, newHandler func() (http.Handler, error), vars ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		h, err := newHandler()
		if err != nil {
			t.Fatal(err)
		}
		testscript.RunT(bubble{t}, testscript.Params{
			Dir: "testdata",
			Setup: func(env *testscript.Env) error {
				env.Vars = append(env.Vars, vars...)
				return nil
			},
			Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
				"curl":  func(ts *testscript.TestScript, _ bool, args []string) { curl(ts, h, args) },
				"sleep": sleep,
			},
		})
	})
}

// bubble runs scripts one after the other: a bubble of synctest has no subtests.
type bubble struct{ *testing.T }

func (b bubble) Run(_ string, f func(testscript.T)) { f(b) }
func (bubble) Parallel()                            {}
func (bubble) Verbose() bool                        { return testing.Verbose() }

func sleep(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	time.Sleep(d)
}

// curl sends a request, or some, and fails if one gets another status than it should. It
// prints the response to the last one.
func curl(ts *testscript.TestScript, h http.Handler, args []string) {
	times := 1
	if n, err := strconv.Atoi(args[1]); err == nil {
		times, args = n, slices.Delete(args, 1, 2)
	}
	for range times {
		w := send(ts, h, args[1:])
		if strconv.Itoa(w.Code) != args[0] {
			ts.Fatalf("the response is %d %s, want %s", w.Code, w.Body, args[0])
		}
		if times--; times > 0 {
			continue
		}
		if slices.Contains(args, "-i") {
			for _, name := range slices.Sorted(maps.Keys(w.Header())) {
				fmt.Fprintf(ts.Stdout(), "%s: %s\n", name, strings.Join(w.Header()[name], ", "))
			}
			fmt.Fprintln(ts.Stdout())
		}
		fmt.Fprint(ts.Stdout(), w.Body)
	}
}

func send(ts *testscript.TestScript, h http.Handler, args []string) *httptest.ResponseRecorder {
	method, path, body, header := "GET", "", "", http.Header{}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-i":
			continue
		case "-X":
			method = args[i+1]
		case "-d":
			method, body = "POST", args[i+1]
			if header.Get("Content-Type") == "" {
				header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
		case "-H":
			name, value, _ := strings.Cut(args[i+1], ": ")
			header.Set(name, value)
		case "-u":
			user, password, _ := strings.Cut(args[i+1], ":")
			r := http.Request{Header: header}
			r.SetBasicAuth(user, password)
		default:
			path = args[i]
			continue
		}
		i++
	}
	if !strings.HasPrefix(path, "/") {
		ts.Fatalf("%q is not a path", path)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header = header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
