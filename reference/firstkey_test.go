package main_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
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
	for _, tt := range []struct {
		name string
		tls  *certificate
	}{
		{"plain HTTP", nil},
		{"a certificate for this address", &certificate{ips: []string{"127.0.0.1"}}},
		{"a certificate for another name", &certificate{names: []string{"pets.example"}}},
		{"a certificate for many names", &certificate{names: []string{"*.pets.example"}}},
		{"a certificate signed by another", &certificate{names: []string{"pets.example"}, signed: true}},
		{"a certificate in a folder with an odd name", &certificate{names: []string{"pets.example"}, folder: `it's "here" $HOME`}},
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

			status, body := paste(t, first.curl)
			if status != 200 || body != "[]\n" {
				t.Errorf("%s\nanswered with %d %q, want 200 and no pets", first.curl, status, body)
			}
			if _, err := exec.LookPath("curl"); err != nil {
				t.Logf("curl is not here, so the line was only read: %v", err)
				return
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

// paste sends the request that a shell and curl would, given a line.
func paste(t *testing.T, line string) (status int, body string) {
	t.Helper()
	words, err := shellWords(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var target, connectTo string
	transport := &http.Transport{DisableKeepAlives: true}
	header := http.Header{}
	for i := 1; i < len(words); i++ {
		switch word := words[i]; word {
		case "-i":
		case "--noproxy":
			i++
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			header.Set(name, value)
		case "--connect-to":
			i++
			connectTo = strings.TrimPrefix(words[i], "::")
		case "--cacert":
			i++
			pem, err := os.ReadFile(words[i])
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
			transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
		default:
			target = word
		}
	}
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connectTo != "" {
			addr = connectTo
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	r.Header = header
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return resp.StatusCode, string(data)
}

// shellWords splits a line as a POSIX shell does, as far as words, apostrophes and
// backslashes go.
func shellWords(line string) (words []string, err error) {
	var word strings.Builder
	inWord, quoted := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, inWord = !quoted, true
		case quoted:
			word.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			inWord = true
		case c == ' ':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		case strings.IndexByte(`"$&|;<>()*?[#~`+"`", c) >= 0:
			return nil, fmt.Errorf("a shell would interpret %q", c)
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quoted {
		return nil, errors.New("an apostrophe is missing")
	}
	return append(words, word.String()), nil
}
