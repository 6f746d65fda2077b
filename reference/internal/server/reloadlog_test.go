package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/logging"
)

func TestReloadOfTheLog(t *testing.T) {
	dir := t.TempDir()
	file, logFile := filepath.Join(dir, "petstore.yaml"), filepath.Join(dir, "log")
	put(t, file, "log: {level: warn}")
	r, _ := testReloader(t, file, func(*config.Config) error { return nil })
	log, err := logging.Open(config.Log{Level: r.current.Log.Level, Format: config.LogText, File: logFile, MaxSize: 1024}, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	r.log, r.logger = log, log.Logger()

	r.logger.Info("too low")
	put(t, file, "log: {level: debug, max_size: 7, file: other}")
	r.reload("test")
	r.logger.Debug("low")
	// The file is opened again although the settings are refused.
	if err := os.Rename(logFile, logFile+".1"); err != nil {
		t.Fatal(err)
	}
	put(t, file, "log: {level: loud}")
	r.hungUp()
	put(t, file, "log: {level: error, max_size: 7, file: other}")
	r.reload("test")
	r.logger.Warn("too low again")
	log.Close(10 * time.Second)

	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before, after := read(logFile+".1"), read(logFile)
	want := []string{
		"setting=log.level old=warn new=debug", `takes effect after a restart" setting=log.file old="" new=other`,
		"setting=log.max_size old=1024 new=7", "reloaded", "msg=low", // in either file, as they are written in the background
		"refused", "setting=log.level old=debug new=error", "restart", "reloaded",
	}
	const sinceReopened = 4
	if got := strings.Count(after, "\n"); got < sinceReopened {
		t.Errorf("%s has %d lines, want at least those since it was opened again, %d\n%s", logFile, got, sinceReopened, after)
	}
	lines := strings.Split(strings.TrimSpace(before+after), "\n")
	for i, want := range want {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("the log is\n%s\nwant a line with %q as line %d", before+after, want, i+1)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("the log has %d lines, want %d\n%s", len(lines), len(want), before+after)
	}
}

func TestAFileThatCannotBeOpenedAgainIsLogged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := logging.Open(config.Log{File: filepath.Join(dir, "log"), Format: config.LogText}, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	(&reloader{log: log, logger: log.Logger()}).reopenLog()
	log.Close(10 * time.Second)
	text, err := os.ReadFile(filepath.Join(dir+".old", "log"))
	if err != nil || !strings.Contains(string(text), `level=ERROR msg="cannot open the log file again; the old one stays in use"`) {
		t.Errorf("the old file has %q, %v; want an error", text, err)
	}
}
