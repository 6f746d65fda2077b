package readme

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// shell runs commands against a server without a network.
type shell struct {
	server *http.Server
	conns  chan net.Conn
	done   chan struct{}
	vars   map[string]string
}

func newShell(h http.Handler, vars []string) *shell {
	s := &shell{
		server: &http.Server{Handler: h},
		conns:  make(chan net.Conn),
		done:   make(chan struct{}),
		vars:   map[string]string{},
	}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		s.vars[name] = value
	}
	go s.server.Serve(s) //nolint:errcheck // ErrServerClosed
	return s
}

func (s *shell) close() { s.server.Close() }

// Accept, Close and Addr make the shell the listener of its server.
func (s *shell) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}
func (s *shell) Close() error   { close(s.done); return nil }
func (s *shell) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081} }

// client is the end of a connection that the server sees, with the address of a client.
type client struct{ net.Conn }

func (client) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000} }

var loop = regexp.MustCompile(`^for i in ([\d ]+); do (.*?)(; done| & done; wait)$`)

// run returns what a command prints.
func (s *shell) run(t *testing.T, line string) string {
	t.Helper()
	m := loop.FindStringSubmatch(line)
	if m == nil {
		return s.one(t, line)
	}
	var out strings.Builder
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, i := range strings.Fields(m[1]) {
		once := func() {
			text := s.one(t, strings.ReplaceAll(m[2], "$i", i))
			mu.Lock()
			defer mu.Unlock()
			out.WriteString(text)
		}
		if m[3] == "; done" {
			once()
		} else {
			wg.Go(once)
		}
	}
	wg.Wait()
	return out.String()
}

var word = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

// one runs sleep or curl, and grep after it.
func (s *shell) one(t *testing.T, line string) string {
	t.Helper()
	if line, pattern, ok := strings.Cut(line, " | grep "); ok {
		matching, out := regexp.MustCompile(pattern), ""
		for l := range strings.Lines(s.one(t, line)) {
			if matching.MatchString(l) {
				out += l
			}
		}
		return out
	}
	var words []string
	for _, w := range word.FindAllString(line, -1) {
		if !strings.HasPrefix(w, "'") {
			w = os.Expand(w, func(name string) string { return s.vars[name] })
		}
		words = append(words, strings.Trim(w, `'"`))
	}
	if words[0] == "sleep" {
		d, err := time.ParseDuration(words[1] + "s")
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		time.Sleep(d)
		return ""
	}
	var method, url, body, user string
	head := false
	header := http.Header{"User-Agent": {"curl/8"}, "Accept": {"*/*"}}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; w {
		case "-s":
		case "-i":
			head = true
		case "-X", "-d", "-u", "-H":
			i++
			switch v := words[i]; w {
			case "-X":
				method = v
			case "-u":
				user = v
			case "-d":
				method, body = cmp.Or(method, "POST"), v
				header.Set("Content-Type", cmp.Or(header.Get("Content-Type"), "application/x-www-form-urlencoded"))
			case "-H":
				name, value, _ := strings.Cut(v, ": ")
				header.Set(name, value)
			}
		default:
			url = w
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), cmp.Or(method, "GET"), url, strings.NewReader(body))
	if err != nil || words[0] != "curl" || r.URL.Host != "127.0.0.1:8081" {
		t.Errorf("%s: want curl with a URL at http://127.0.0.1:8081, error %v", line, err)
		return ""
	}
	r.Header = header
	if name, password, ok := strings.Cut(user, ":"); ok {
		r.SetBasicAuth(name, password)
	}
	text, err := s.send(r, head)
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return text
}

// send sends r over a connection of its own, and returns the response as curl prints it.
func (s *shell) send(r *http.Request, head bool) (string, error) {
	conn, served := net.Pipe()
	defer conn.Close()
	s.conns <- client{served}
	wrote := make(chan error, 1)
	go func() { wrote <- r.Write(conn) }()
	var raw bytes.Buffer
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &raw)), r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	fields, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
	body, err := io.ReadAll(resp.Body)
	if !head {
		return string(body), err
	}
	return strings.ReplaceAll(fields, "\r\n", "\n") + "\n\n" + string(body), err
}
