package compatibility

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// A cell of the matrix: one behaviour over one protocol inside of one middleware, or
// of none.
type cell struct {
	t       *testing.T
	http2   bool
	b       behaviour
	m       wrapped
	file    string // with the content of large
	url     string
	client  *http.Client
	gate    chan struct{} // closed by open
	opening sync.Once
	sent    atomic.Bool // the file was handed to the connection as a file

	mu               sync.Mutex
	serverL, clientL []string
}

// served notes what the handler finds.
func (c *cell) served(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serverL = append(c.serverL, "handler: "+fmt.Sprintf(format, args...))
}

// received notes what the client gets.
func (c *cell) received(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clientL = append(c.clientL, "client: "+fmt.Sprintf(format, args...))
}

// open lets a handler go on that waits at the gate.
func (c *cell) open() { c.opening.Do(func() { close(c.gate) }) }

// wait waits for the client to open the gate.
func (c *cell) wait() { <-c.gate }

// servers are being closed.
var servers sync.WaitGroup

// observe runs a behaviour inside of m and returns what was noted. Temporary files are
// in dir.
func observe(t *testing.T, b behaviour, http2 bool, dir, file string, m wrapped) []string {
	t.Helper()
	c := &cell{t: t, http2: http2, b: b, m: m, file: file, gate: make(chan struct{})}
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.serve(c, w, r) })
	if m.wrap != nil {
		h = m.wrap(h)
	}
	var running sync.RWMutex // not a WaitGroup: a pushed request can begin when no other runs
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.RLock()
		defer running.RUnlock()
		defer func() {
			if r.Pattern == "GET /pets/{petId}" { // as an outer access log would see it
				c.served("the pattern outside is %s", r.Pattern)
			}
		}()
		h.ServeHTTP(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	if http2 {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Listener = &fileListener{srv.Listener, c}
		srv.Start()
	}
	c.url, c.client = srv.URL, srv.Client()
	c.client.Transport.(*http.Transport).ExpectContinueTimeout = time.Hour // never send the body unasked
	if b.ask == nil {
		c.do(http.MethodGet, "/", nil)
	} else {
		b.ask(c)
	}
	c.open()
	c.client.CloseIdleConnections()
	servers.Go(srv.Close) // takes half a second if the handler has broken the connection
	if b.closes {
		servers.Wait()
	}
	running.Lock()
	defer running.Unlock()
	if c.sent.Load() {
		c.served("the connection was given the file")
	}
	left := testcheck.Must(os.ReadDir(dir))
	if len(left) > 0 {
		c.served("%d temporary files are left", len(left))
		for _, f := range left {
			_ = os.Remove(dir + "/" + f.Name())
		}
	}
	return append(c.serverL, c.clientL...)
}

// fileListener accepts connections that notice when net/http hands them a file, for
// which the operating system has sendfile.
type fileListener struct {
	net.Listener
	c *cell
}

func (l *fileListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &fileConn{conn.(*net.TCPConn), l.c}, nil
}

type fileConn struct {
	*net.TCPConn
	c *cell
}

func (conn *fileConn) ReadFrom(src io.Reader) (int64, error) {
	inner := src
	if limited, ok := src.(*io.LimitedReader); ok {
		inner = limited.R
	}
	if _, ok := inner.(interface{ Stat() (os.FileInfo, error) }); ok {
		conn.c.sent.Store(true)
	}
	return conn.TCPConn.ReadFrom(src)
}
