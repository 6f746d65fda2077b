package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
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
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", tls), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var args []string
			if tls {
				writeCertificate(t, dir) // for another name, and of a signer that curl does not know
				args = []string{"--tls-cert=cert.pem", "--tls-key=key.pem"}
			}
			p := serve(t, dir, args...)
			first, err := readFirstKey(p.notice)
			must(t, err)

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
