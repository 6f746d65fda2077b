package apierror_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

var update = flag.Bool("update", false, "write the golden files in testdata instead of comparing with them")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		testcheck.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want := testcheck.Must(os.ReadFile(file))
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the body differs from %s (-want +got):\n%s", file, diff)
	}
}

// logbook is a log in JSON.
type logbook struct{ testcheck.Log }

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// lines returns the records, each as its members.
func (l *logbook) lines(t *testing.T) []map[string]any {
	t.Helper()
	var records []map[string]any
	for line := range strings.Lines(l.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		records = append(records, record)
	}
	return records
}

// serve starts a server for h, of HTTP/2 over TLS if http2 is set. When the test
// ends, net/http must have had nothing to complain about, such as a second
// WriteHeader.
func serve(t *testing.T, h http.Handler, http2 ...bool) *httptest.Server {
	t.Helper()
	var complaints logbook
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(&complaints, "", 0)
	srv.Config.DisableGeneralOptionsHandler = true // so that OPTIONS * reaches h
	if len(http2) > 0 && http2[0] {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(func() {
		srv.Close()
		if s := complaints.String(); s != "" {
			t.Errorf("net/http complained: %s", s)
		}
	})
	return srv
}

// response is what was read from the wire.
type response struct {
	*http.Response
	body string
	err  error // of reading the body
}

// exchange sends text as it is, line feeds made CRLF, on a connection of its own
// and reads one response. Clients of net/http would tidy the target.
func exchange(t *testing.T, srv *httptest.Server, text string) response {
	t.Helper()
	conn := testcheck.Must(net.Dial("tcp", srv.Listener.Addr().String()))
	defer conn.Close()
	testcheck.Must(io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n")))
	method, _, _ := strings.Cut(text, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: no response: %v", text, err)
	}
	body, err := io.ReadAll(res.Body)
	return response{res, string(body), err}
}

// do sends a request by the server's client, with header fields in pairs.
func do(t *testing.T, srv *httptest.Server, method, path string, fields ...string) response {
	t.Helper()
	r := testcheck.Must(http.NewRequestWithContext(t.Context(), method, srv.URL+path, nil))
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	res := testcheck.Must(srv.Client().Do(r))
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return response{res, string(body), err}
}
