package observe_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// The SDK quotes the variables that it cannot parse. Headers and URLs contain passwords.
func TestTheLogHasNoPasswordsOfTheEnvironment(t *testing.T) {
	for _, env := range []string{
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Basic%zzsecret",
		"OTEL_EXPORTER_OTLP_HEADERS=Bearer secret",
		"OTEL_EXPORTER_OTLP_HEADERS=bad secret=1",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=authorization=Basic%zzsecret",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS=authorization=Basic%zzsecret",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://me:secret@localhost:port",
	} {
		t.Run(env, func(t *testing.T) {
			setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1", env)
			var log bytes.Buffer
			o, err := observe.Start(t.Context(), observe.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			o.Close()
			if got := log.String(); !strings.Contains(got, "OpenTelemetry: ") || strings.Contains(got, "secret") {
				t.Errorf("the log is\n%s\nwant a line about the mistake, without the value of the variable", got)
			}
		})
	}
}

// A line that is longer than the buffer of the log would be dropped.
func TestErrorsOfACollectorAreLoggedInPart(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(bytes.Repeat([]byte("ä"), 1<<20))
	}))
	defer s.Close()
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+s.URL)
	var log bytes.Buffer
	o, err := observe.Start(t.Context(), observe.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	o.Close()
	handle := observe.NewErrorLog(slog.New(slog.NewTextHandler(&log, nil)))
	handle(errors.New("status 500: " + strings.Repeat("€", 1<<20)))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) < 2 {
		t.Errorf("the log has %d lines, want one of Close and one of the SDK", len(lines))
	}
	for _, line := range lines {
		if len(line) > 2000 || !strings.Contains(line, "500") || strings.Contains(line, "\ufffd") {
			t.Errorf("a line has %d bytes, want at most 2000 with the status: %.300s", len(line), line)
		}
	}
}
