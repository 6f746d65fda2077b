package httpserver

import (
	"bytes"
	"log"
	"log/slog"
	"testing"
)

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
