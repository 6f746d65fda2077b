package observe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// Tests do not see the variables of OpenTelemetry that the shell has.
func TestMain(m *testing.M) {
	for _, name := range telemetryVariables() {
		os.Unsetenv(name)
	}
	m.Run()
}

// telemetryVariables returns the names of those that are set.
func telemetryVariables() (names []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			names = append(names, name)
		}
	}
	return names
}

// setenv sets the variables of OpenTelemetry, and no others of it, for a test.
func setenv(t *testing.T, variables ...string) {
	t.Helper()
	for _, name := range telemetryVariables() {
		t.Setenv(name, "")
	}
	for _, v := range variables {
		if name, value, ok := strings.Cut(v, "="); ok {
			t.Setenv(name, value)
		}
	}
}

func TestSignalsAreExportedIfTheEnvironmentAsks(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"
	for _, test := range []struct {
		env             []string
		traces, metrics bool
	}{
		{nil, false, false},
		{[]string{"OTEL_TRACES_SAMPLER=always_on", "OTEL_SERVICE_NAME=pets"}, false, false},
		{[]string{endpoint}, true, true},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318"}, true, false},
		{[]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://localhost:4318"}, false, true},
		{[]string{"OTEL_TRACES_EXPORTER=otlp"}, true, false},
		{[]string{"OTEL_METRICS_EXPORTER=console"}, false, true},
		{[]string{endpoint, "OTEL_METRICS_EXPORTER=none"}, true, false},
		{[]string{endpoint, "OTEL_METRICS_EXPORTER=prometheus"}, true, false}, // which /metrics is
	} {
		t.Run(strings.Join(test.env, " "), func(t *testing.T) {
			setenv(t, test.env...)
			if traces, metrics := observe.AsksFor("TRACES"), observe.AsksFor("METRICS"); traces != test.traces || metrics != test.metrics {
				t.Errorf("traces %t, metrics %t; want %t, %t", traces, metrics, test.traces, test.metrics)
			}
		})
	}
}

// start starts an Observer with the environment.
func start(t *testing.T) *observe.Observer {
	t.Helper()
	o, err := observe.Start(t.Context(), "v1.2.3", slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(o.Close)
	return o
}

func page(o *observe.Observer) string {
	w := httptest.NewRecorder()
	o.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestTheResource(t *testing.T) {
	for _, test := range []struct{ env, want string }{
		{"", `service_name="petstore",service_version="v1.2.3"`},
		{"OTEL_SERVICE_NAME=pets", `service_name="pets"`},
		{"OTEL_RESOURCE_ATTRIBUTES=service.name=cats,deployment.environment.name=test", `deployment_environment_name="test"`},
		{"OTEL_RESOURCE_ATTRIBUTES=service.name=cats", `service_name="cats"`},
	} {
		setenv(t, test.env)
		if got := page(start(t)); !strings.Contains(got, test.want) {
			t.Errorf("with %q the metrics are\n%.500s\nwant %s in them", test.env, got, test.want)
		}
	}
}

func TestTheSDKCanBeDisabled(t *testing.T) {
	setenv(t, "OTEL_SDK_DISABLED=TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1")
	got := page(start(t))
	if strings.Contains(got, "gatehouse_") || strings.Contains(got, "target_info") || !strings.Contains(got, "go_goroutines") {
		t.Errorf("the metrics are\n%.500s\nwant only those of the Go runtime and the process", got)
	}
}

func TestMistakesInTheEnvironmentAreErrors(t *testing.T) {
	for _, env := range []string{
		"OTEL_TRACES_EXPORTER=jaeger", "OTEL_METRICS_EXPORTER=statsd", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_RESOURCE_ATTRIBUTES=a",
	} {
		name, _, _ := strings.Cut(env, "=")
		setenv(t, env)
		if name == "OTEL_EXPORTER_OTLP_PROTOCOL" {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
		}
		o, err := observe.Start(t.Context(), "", slog.New(slog.DiscardHandler))
		if err == nil {
			o.Close()
			t.Errorf("%s: no error", env)
		} else if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v; want an error that names the variable", env, err)
		}
	}
}

// While a collector is away there is one error for each batch.
func TestErrorsOfTheSDKAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		handle := observe.NewErrorLog(slog.New(slog.NewTextHandler(&log, nil)))
		for range 125 {
			handle(errors.New("no collector"))
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "no collector"); n != 3 || strings.Count(log.String(), "dropped=59") != 2 {
			t.Errorf("the log has %d lines after 125 errors in as many seconds, want 3 with the number of the others\n%s", n, &log)
		}
	})
}

// A collector that does not answer must not keep the server from stopping.
func TestCloseWaitsForThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := observe.ShutDownBy(slog.New(slog.NewTextHandler(&log, nil)), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(ctx context.Context) error { return ctx.Err() }) // this one has time, too
		before := time.Now()
		o.Close()
		if n := strings.Count(log.String(), "cannot export"); n != 1 {
			t.Errorf("%d exporters failed, want only the one that does not answer\n%s", n, &log)
		}
		if waited := time.Since(before); waited != 3*time.Second || !strings.Contains(log.String(), "cannot export the last telemetry") {
			t.Errorf("Close waited %v and logged %q, want 3s and that something was not exported", waited, &log)
		}
	})
}

// The SDK quotes the variables that it cannot parse. Headers and URLs contain passwords.
func TestTheLogHasNoPasswordsOfTheEnvironment(t *testing.T) {
	for _, env := range []string{
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Basic%zzsecret",
		"OTEL_EXPORTER_OTLP_HEADERS=Bearer secret",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://me:secret@localhost:port",
	} {
		t.Run(env, func(t *testing.T) {
			setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1", env)
			var log bytes.Buffer
			o, err := observe.Start(t.Context(), "", slog.New(slog.NewTextHandler(&log, nil)))
			must(t, err)
			o.Close()
			if got := log.String(); !strings.Contains(got, "OpenTelemetry: ") || strings.Contains(got, "secret") {
				t.Errorf("the log is\n%s\nwant a line about the mistake, without the value of the variable", got)
			}
		})
	}
}

// A line that is longer than the buffer of the log would be dropped.
func TestErrorsOfACollectorAreLoggedInPart(t *testing.T) {
	var log bytes.Buffer
	observe.NewErrorLog(slog.New(slog.NewTextHandler(&log, nil)))(errors.New("status 500: " + strings.Repeat("€", 1<<20)))
	if log.Len() > 2000 || !strings.Contains(log.String(), "500") || strings.Contains(log.String(), "\ufffd") {
		t.Errorf("the line has %d bytes, want at most 2000 with the status: %.300s", log.Len(), &log)
	}
}
