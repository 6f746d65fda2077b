package httpserver

import (
	"bytes"
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
		if got := o.maxConns(); got != want {
			t.Errorf("with %d open files, %d connections become %d, want %d", files, conns, got, want)
		}
		if warned := strings.Contains(log.String(), "setting=max_connections"); warned != (want < conns) {
			t.Errorf("%d connections become %d, and there is a warning: %v", conns, want, warned)
		}
	}
}
