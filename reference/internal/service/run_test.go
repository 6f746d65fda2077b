package service

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/server"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// A server of which one listener fails must not go on with half of what it is for.
func TestServeEndsWhenOneListenerFails(t *testing.T) {
	newServer := func() *server.Server {
		s, err := server.New(http.NotFoundHandler(), server.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, which := range []string{"api", "admin"} {
		t.Run(which, func(t *testing.T) {
			var l listeners
			var err error
			for _, p := range []*net.Listener{&l.api, &l.admin} {
				if *p, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
					t.Fatal(err)
				}
			}
			defer l.close()
			if which == "api" {
				l.api.Close()
			} else {
				l.admin.Close()
			}
			ended := make(chan error, 1)
			go func() { ended <- serve(t.Context(), &l, newServer(), newServer()) }()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("serve = nil, want the listener's error")
				}
			case <-time.After(10 * time.Second):
				t.Error("serve goes on")
			}
		})
	}
}

func TestAFirstKeyThatCannotBeShownIsNamedInTheLog(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "petstore.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var log bytes.Buffer
	s := &state{store: db, logger: slog.New(slog.NewTextHandler(&log, nil))}
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	if err := s.showFirstKey(t.Context(), config.Default(), addr, closedPipe{}); err != nil {
		t.Errorf("showFirstKey = %v, want that the server goes on", err)
	}
	keys, err := db.ListKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys = %v, %v, want one", keys, err)
	}
	if want := "level=ERROR msg=\"the first key could not be shown; make another with petstore keys create\" key=" + keys[0].ID; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %q, want %q in it", &log, want)
	}
	if strings.Contains(log.String(), "pet_live_") {
		t.Errorf("the key is in the log: %s", &log)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
