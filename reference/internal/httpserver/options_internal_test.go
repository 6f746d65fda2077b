package httpserver

import (
	"bytes"
	"log"
	"log/slog"
	"math"
	"strings"
	"testing"
)

func TestConnectionsLeaveOpenFilesForTheRest(t *testing.T) {
	files := openFiles()
	if files <= reservedFiles || files == math.MaxInt {
		t.Skipf("this process may have %d open files, which the test cannot use", files)
	}
	for conns, want := range map[int]int{
		1: 1, files - reservedFiles: files - reservedFiles, files - reservedFiles + 1: files - reservedFiles,
	} {
		var log bytes.Buffer
		o := Options{MaxConns: conns, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		if got := o.limits().max; got != want {
			t.Errorf("with %d open files, %d connections become %d, want %d", files, conns, got, want)
		}
		if warned := strings.Contains(log.String(), "setting=max_connections"); warned != (want < conns) {
			t.Errorf("%d connections become %d, and there is a warning: %v", conns, want, warned)
		}
	}
}

// Scanners do not fill the log, and no line has a target.
func TestErrorLog(t *testing.T) {
	for message, want := range map[string]string{
		"http: TLS handshake error from 192.0.2.1:5: EOF\n":                                                      "",
		"http2: server connection error from 192.0.2.1:5: connection error: COMPRESSION_ERROR\n":                 `level=WARN msg="http server" message="http2: server connection error from 192.0.2.1:5: connection error: COMPRESSION_ERROR"`,
		`http2: server: error reading preface from client 192.0.2.1:5: bogus greeting "GET /v1/pets?key=secret"`: `level=WARN msg="http server" message="http2: server: error reading preface from client 192.0.2.1:5"`,
	} {
		var b bytes.Buffer
		log.New(errorLog{slog.New(slog.NewTextHandler(&b, nil))}, "", 0).Print(message)
		if _, got, _ := bytes.Cut(bytes.TrimSpace(b.Bytes()), []byte(" ")); string(got) != want { // after the time
			t.Errorf("the line about %q is %q, want %q", message, got, want)
		}
	}
}
