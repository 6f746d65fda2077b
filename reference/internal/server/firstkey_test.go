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

// closedPipe is the output of a server that nobody reads.
type closedPipe struct{ bytes.Buffer }

func (p *closedPipe) Write(text []byte) (int, error) {
	p.Buffer.Write(text)
	return 0, io.ErrClosedPipe
}

// Where the settings forbid it, no first key is made. One that cannot be shown is named in the log.
func TestFirstKeysThatAreNotShown(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "petstore.db"), sqlite.Options{})
		must(t, err)
		defer db.Close()
		c := config.Default()
		c.FirstKey = wanted
		var log bytes.Buffer
		var notice closedPipe
		s := newServer(c, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Notice: &notice})
		s.store = db
		if err := s.showFirstKey(t.Context(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}); err != nil {
			t.Errorf("showFirstKey = %v, want that the server goes on", err)
		}
		keys, err := db.ListKeys(t.Context())
		must(t, err)
		if (len(keys) == 1) != wanted || (notice.Len() > 0) != wanted {
			t.Fatalf("first_key is %v: the keys are %v, and %q is written", wanted, keys, &notice)
		}
		if !wanted {
			continue
		}
		if want := "level=ERROR msg=\"cannot show the first key; create another one with petstore keys create\" key=" + keys[0].ID; !strings.Contains(log.String(), want) {
			t.Errorf("the log is %q, want %q in it", &log, want)
		}
		if strings.Contains(log.String(), "pet_live_") {
			t.Errorf("the key is in the log: %s", &log)
		}
	}
}

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
