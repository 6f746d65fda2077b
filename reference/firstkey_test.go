package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// firstKey is what a server shows when there was no key yet.
type firstKey struct {
	key  string
	curl string // the line to paste
}

var (
	keyLine  = regexp.MustCompile(`(?m)^ +(pet_live_[0-9A-Za-z]{36})$`)
	curlLine = regexp.MustCompile(`(?m)^ +(curl .*)$`)
)

func readFirstKey(notice string) (firstKey, error) {
	key, curl := keyLine.FindStringSubmatch(notice), curlLine.FindStringSubmatch(notice)
	if key == nil || curl == nil {
		return firstKey{}, fmt.Errorf("there is no key and no curl line in %q", notice)
	}
	return firstKey{key[1], curl[1]}, nil
}

func TestFirstStartShowsAKeyAndACurlLineThatWorks(t *testing.T) {
	t.Parallel()
	testenv.Tool(t, "curl")
	for _, tt := range []struct {
		name string
		tls  *certificate
	}{
		{"plain HTTP", nil},
		{"a certificate for this address", &certificate{ips: []string{"127.0.0.1"}}},
		{"a certificate of other names, signed by another, in a folder with an odd name",
			&certificate{names: []string{"*.pets.example"}, signed: true, folder: `it's "here" $HOME`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var args []string
			if tt.tls != nil {
				// Named from the folder that the server is in, and the shell is not.
				tt.tls.write(t, dir)
				args = []string{
					"--tls-cert=" + filepath.Join(tt.tls.folder, "cert.pem"), "--tls-key=" + filepath.Join(tt.tls.folder, "key.pem"),
				}
			}
			p := serve(t, dir, args...)
			first, err := readFirstKey(p.notice)
			if err != nil {
				t.Fatal(err)
			}

			shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", first.curl)
			const proxy = "=http://127.0.0.1:1" // at which nothing listens
			shell.Env = append(os.Environ(), "http_proxy"+proxy, "https_proxy"+proxy, "ALL_PROXY"+proxy)
			out, err := shell.Output()
			if err != nil {
				t.Fatalf("%s\n%v", first.curl, err)
			}
			if !regexp.MustCompile(`^HTTP/[0-9.]+ 200`).Match(out) || !strings.HasSuffix(string(out), "\r\n\r\n[]\n") {
				t.Errorf("%s\nprinted %s\nwant status 200 and no pets", first.curl, out)
			}
		})
	}
}

func TestFirstKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, dir)
	first, err := readFirstKey(p.notice)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	p = serve(t, dir)
	if p.notice != "" {
		t.Errorf("the second start says %q, want nothing", p.notice)
	}
	mustAsk(t, 200, "GET", p.api+"/v1/pets", first.key, "")
	if list := petstore(t, dir, "keys", "list", "--json"); strings.Count(list, `"id"`) != 1 || !strings.Contains(list, `"plan": "free"`) {
		t.Errorf("the keys are %s, want one of the plan free", list)
	}
}

func TestOfTwoServersThatStartTogetherOneServes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var servers [2]*process
	var errs [2]error
	var wg sync.WaitGroup
	for i := range servers {
		logs := t.TempDir()
		cmd := exec.Command("petstore", serveArgs(nil)...)
		cmd.Dir, cmd.Env = dir, environment()
		wg.Go(func() { servers[i], errs[i] = launchCommand(cmd, logs) })
	}
	wg.Wait()
	served, refused := 0, 1
	if errs[0] != nil {
		served, refused = 1, 0
	}
	if errs[served] != nil {
		t.Fatalf("neither serves: %v", errors.Join(errs[:]...))
	}
	t.Cleanup(servers[served].kill)
	if errs[refused] == nil {
		servers[refused].kill()
		t.Fatal("both serve")
	}
	if !strings.Contains(errs[refused].Error(), "another petstore serves petstore.db") {
		t.Errorf("the other says %v, want that another serves", errs[refused])
	}
	first, err := readFirstKey(servers[served].notice)
	if err != nil {
		t.Fatal(err)
	}
	mustAsk(t, 200, "GET", servers[served].api+"/v1/pets", first.key, "")
	if list := petstore(t, dir, "keys", "list", "--json"); strings.Count(list, `"id"`) != 1 {
		t.Errorf("the keys are %s, want one", list)
	}
}

func TestNoFirstKeyWhereThereIsOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := petstore(t, dir, "keys", "create", "--name=n", "--owner=o", "--plan=pro")
	if p := serve(t, dir); p.notice != "" {
		t.Errorf("with the key %s made before, the first start says %q, want nothing", id[:9], p.notice)
	}
}
