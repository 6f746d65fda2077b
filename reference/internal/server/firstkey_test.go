package server

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

func TestNoFirstKeyIsMadeWhereTheSettingsForbidIt(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "petstore.db"), sqlite.Options{})
	must(t, err)
	defer db.Close()
	c := config.Default()
	c.FirstKey = false
	var notice bytes.Buffer
	s := newServer(c, Options{Logger: slog.New(slog.DiscardHandler), Notice: &notice})
	s.store = db
	if err := s.showFirstKey(t.Context(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}); err != nil {
		t.Error(err)
	}
	if keys, err := db.ListKeys(t.Context()); err != nil || len(keys) != 0 || notice.Len() != 0 {
		t.Errorf("keys = %v, %v, and %q was shown; want none", keys, err, &notice)
	}
}

func TestAFirstKeyThatCannotBeShownIsNamedInTheLog(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "petstore.db"), sqlite.Options{})
	must(t, err)
	defer db.Close()
	var log bytes.Buffer
	s := newServer(config.Default(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Notice: closedPipe{}})
	s.store = db
	if err := s.showFirstKey(t.Context(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}); err != nil {
		t.Errorf("showFirstKey = %v, want that the server goes on", err)
	}
	keys, err := db.ListKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys = %v, %v, want one", keys, err)
	}
	if want := "level=ERROR msg=\"cannot show the first key; create another one with petstore keys create\" key=" + keys[0].ID; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %q, want %q in it", &log, want)
	}
	if strings.Contains(log.String(), "pet_live_") {
		t.Errorf("the key is in the log: %s", &log)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestLocalAddress(t *testing.T) {
	for listener, want := range map[string]string{
		"127.0.0.1:8080":   "127.0.0.1:8080",
		"0.0.0.0:8080":     "127.0.0.1:8080",
		"[::]:8080":        "127.0.0.1:8080",
		"[::1]:8080":       "[::1]:8080",
		"192.0.2.1:8080":   "192.0.2.1:8080",
		"[2001:db8::1]:80": "[2001:db8::1]:80",
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listener))
		if got := localAddress(addr); got != want {
			t.Errorf("a listener at %s is reached at %s, want %s", listener, got, want)
		}
	}
}
