//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// openSoon is open with timeouts that are too short for a busy machine now and then.
func openSoon(t testing.TB, url string, o postgres.Options) (s *postgres.Store) {
	t.Helper()
	eventually(t, "the database is open", func() (err error) {
		s, err = postgres.Open(t.Context(), url, o)
		return err
	})
	t.Cleanup(func() { s.Close() })
	return s
}

func create(t testing.TB, s *postgres.Store) store.Pet {
	t.Helper()
	pet, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	must(t, err)
	return pet
}

// createSoon is create where a server or a connection may not be ready yet.
func createSoon(t testing.TB, s *postgres.Store) (pet store.Pet) {
	t.Helper()
	eventually(t, "a pet is created", func() (err error) {
		pet, err = s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		return err
	})
	return pet
}

// alter changes settings of the database of a URL.
func alter(t testing.TB, url string, settings ...string) {
	t.Helper()
	name := query[string](t, url, "SELECT current_database()")
	for _, s := range settings {
		postgrestest.Exec(t, url, "ALTER DATABASE "+name+" SET "+s)
	}
}

// query returns the only value of a statement's answer.
func query[T any](t testing.TB, url, text string, args ...any) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), text, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// checkText checks that an error has a text and not the password.
func checkText(t testing.TB, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("there is no error, want one with %q", want)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error is %q, want one with %q", err, w)
		}
	}
	if strings.Contains(err.Error(), postgrestest.Password) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has a password or a line break: %q", err)
	}
}

// eventually calls do until it returns nil.
func eventually(t testing.TB, what string, do func() error) {
	t.Helper()
	const patience = 2 * time.Minute
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("%s after %v: %v", what, patience, err)
		}
	}
}

// checkUnavailable checks that an error is ErrUnavailable with a text.
func checkUnavailable(t testing.TB, err error, want ...string) {
	t.Helper()
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the error is %v, want one that wraps ErrUnavailable", err)
	}
	checkText(t, err, want...)
}

// noon is when the requests of the tests arrive.
var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// A proxy stands between a store and its server, and resets a connection where a test says.
type proxy struct {
	url string // of the database, through the proxy

	mu    sync.Mutex
	armed bool
	way   direction
	left  int // bytes that pass in this direction until the reset
}

// A direction is that of bytes through a proxy.
type direction string

const (
	toServer direction = "to the server"
	toClient direction = "to the client"
)

// through starts a proxy in front of the server of a URL. It ends with the test.
func through(t *testing.T, url string) *proxy {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	addr := net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	p := &proxy{url: strings.Replace(url, addr, l.Addr().String(), 1)}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				continue
			}
			go p.copy(server, client, toServer)
			go p.copy(client, server, toClient)
		}
	}()
	return p
}

// cut resets the connection after n more bytes in one direction, once, if there are more.
func (p *proxy) cut(way direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.way, p.left = true, way, n
}

// disarm reports whether nothing was reset since cut.
func (p *proxy) disarm() (armed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	armed, p.armed = p.armed, false
	return armed
}

func (p *proxy) copy(dst, src net.Conn, way direction) {
	defer dst.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := src.Read(buffer)
		part, reset := p.pass(way, buffer[:n])
		if _, writeErr := dst.Write(part); err != nil || writeErr != nil {
			return
		}
		if reset {
			// The server learns of it, but may have begun to do what it has read.
			_ = src.(*net.TCPConn).SetLinger(0)
			_ = src.Close()
			return
		}
	}
}

// pass returns what of b passes, and whether the connection is reset then.
func (p *proxy) pass(way direction, b []byte) (part []byte, reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed || p.way != way {
		return b, false
	}
	if len(b) <= p.left {
		p.left -= len(b)
		return b, false
	}
	p.armed = false
	return b[:p.left], true
}
