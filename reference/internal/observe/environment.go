package observe

import (
	"os"
	"strings"
)

// disabled reports whether OTEL_SDK_DISABLED turns the SDK off. Go's does not read it.
func disabled() bool { return strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") }

// asksFor reports whether the environment asks to export a signal, TRACES or METRICS.
// By the specification OTLP to localhost would be the default; a server that was not
// asked connects to nothing. The exporter prometheus would listen on a port of its
// own, and /metrics has the same.
func asksFor(signal string) bool {
	switch os.Getenv("OTEL_" + signal + "_EXPORTER") {
	case "none", "prometheus":
		return false
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	}
	return true
}
