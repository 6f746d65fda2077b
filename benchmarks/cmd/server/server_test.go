package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the tests start this program as bare servers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == bareCommand {
		if err := serveBare(); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func testBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{ctx: t.Context(), dir: t.TempDir(), rounds: 1}
	t.Cleanup(b.close)
	return b
}

// host returns the address of a server for tests.
func host(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestBareServersAnswerWithTheSameBytes(t *testing.T) {
	original := host(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Odd"] = []string{"a", "b"}
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "5000")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, strings.Repeat("x", 5000))
	})
	r := get("/v1/pets", "key").answered(429)
	a, want, err := exchange(original, r)
	must(t, err)
	created, _, err := exchange(host(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201) }), post("key"))
	must(t, err)
	b := testBench(t)
	bare, err := b.startBare([]answer{a, created})
	must(t, err)
	_, got, err := exchange(bare.addresses[0], r)
	must(t, err)
	if err := checkSame(r, want, got); err != nil {
		t.Error(err)
	}
	if err := checkSame(r, want, bytes.Replace(got, []byte("Vary"), []byte("Very"), 1)); err == nil {
		t.Error("two answers with different header fields are the same, want an error")
	}
	if _, _, err := exchange(bare.addresses[1], post("key")); err != nil {
		t.Error(err)
	}
	b.end()
	select {
	case <-bare.ended:
	default:
		t.Error("the bare server still runs after the end of the section")
	}
}

// A bare server ends with the command, however that ends.
func TestABareServerEndsWithItsInput(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], bareCommand)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := io.WriteString(in, "[]\n"); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
