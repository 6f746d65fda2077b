package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
)

// An informational response has fields of the backend alone, but none of the kinds that
// middlewares have set, and the final one has those of middlewares.
func TestInformationalResponses(t *testing.T) {
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			s := newStack(t, to(t, func(w http.ResponseWriter, _ *http.Request) {
				for _, name := range []string{"a", "b"} {
					setAll(w.Header(), "Link: <"+name+".css>; rel=preload\nX-Request-Id: b\nX-RateLimit-Limit: 5\nSunset: never\n"+
						"Alt-Svc: h3=\":8443\"\nConnection: Keep-Alive, X-Hop\nX-Hop: 1\nKeep-Alive: timeout=5\nUpgrade: h2c\nCache-Control: private")
					w.WriteHeader(http.StatusEarlyHints)
					clear(w.Header())
				}
			}), limit.Options{ChargeIf: limit.NotServerError})
			srv, client := listen(t, s, http2)
			var hints []string
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
					hints = append(hints, fmt.Sprintf("%d %s", status, text(http.Header(h))))
					return nil
				},
			})
			r := must(http.NewRequestWithContext(ctx, "GET", srv.URL, nil))
			resp := must(client.Do(r))
			defer resp.Body.Close()
			const want = "103 Cache-Control: private\nLink: <a.css>; rel=preload; 103 Cache-Control: private\nLink: <b.css>; rel=preload"
			if got := strings.Join(hints, "; "); got != want {
				t.Errorf("hints %s, want %s", got, want)
			}
			wantMiddlewares(t, resp.Header)
			if !http2 {
				resp, _ = raw(srv, "GET / HTTP/1.0\r\n\r\n") // RFC 9110 section 15.2
				if resp.StatusCode != http.StatusOK {
					t.Errorf("an HTTP/1.0 client gets %d first, want 200", resp.StatusCode)
				}
			}
		})
	}
}

// wantMiddlewares checks that a header has the fields of all middlewares.
func wantMiddlewares(t *testing.T, h http.Header) {
	t.Helper()
	for _, name := range []string{
		"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
		"Cache-Control", "Content-Security-Policy", "Referrer-Policy", "X-Content-Type-Options", "Deprecation", "Sunset", "Link",
	} {
		if lines := h.Values(name); len(lines) != 1 {
			t.Errorf("%s: %q, want one value", name, lines)
		}
	}
}

// While a client waits for 100, net/http may be writing that: nothing else is written.
func TestInformationalResponsesBeforeContinue(t *testing.T) {
	s := newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusProcessing)
		io.Copy(io.Discard, r.Body) // sends 100
		w.WriteHeader(http.StatusEarlyHints)
	}), limit.Options{ChargeIf: limit.NotServerError})
	srv, _ := listen(t, s, false)
	conn := must(net.Dial("tcp", srv.Listener.Addr().String()))
	defer conn.Close()
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	in := bufio.NewReader(conn)
	for _, want := range []int{100, 103, 200} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%+v, %v, want %d", resp, err, want)
		}
		if want == 100 {
			io.WriteString(conn, "pets")
		}
	}
}

// Each event arrives when the backend sends it: the backend waits for the client to read
// it.
func TestEvents(t *testing.T) {
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			read := make(chan struct{})
			s := newStack(t, to(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(w, "data: %d\n", i)
					w.(http.Flusher).Flush()
					<-read
				}
			}), limit.Options{ChargeIf: limit.NotServerError})
			srv, client := listen(t, s, http2)
			resp := must(client.Get(srv.URL))
			defer resp.Body.Close()
			wantMiddlewares(t, resp.Header)
			events := bufio.NewScanner(resp.Body)
			for i := range 3 {
				if want := fmt.Sprintf("data: %d", i); !events.Scan() || events.Text() != want {
					t.Fatalf("event %q, %v, want %q", events.Text(), events.Err(), want)
				}
				read <- struct{}{}
			}
			if events.Scan() {
				t.Errorf("one event too many: %q", events.Text())
			}
		})
	}
}

func TestUpgrade(t *testing.T) {
	s := newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
		setAll(w.Header(), "Connection: Upgrade\nUpgrade: "+r.Header.Get("Upgrade")+"\nX-Request-Id: b\nX-RateLimit-Limit: 5")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		line, _ := rw.ReadString('\n')
		io.WriteString(conn, strings.ToUpper(line))
	}), limit.Options{ChargeIf: limit.NotServerError})
	srv, _ := listen(t, s, false)
	conn := must(net.Dial("tcp", srv.Listener.Addr().String()))
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	resp := must(http.ReadResponse(in, nil))
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != "websocket" {
		t.Errorf("%d with Upgrade %q, want 101 with websocket", resp.StatusCode, resp.Header.Get("Upgrade"))
	}
	wantMiddlewares(t, resp.Header)
	io.WriteString(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "HELLO\n" {
		t.Errorf("the backend answers %q, %v, want HELLO", line, err)
	}
	conn.Close()
	if got := s.left(t); got != 9 {
		t.Errorf("%d left, want 9: an upgrade is charged", got)
	}
}

// The transport still reads the body of a request while the response of the backend is
// already being sent. Nothing may use the header of the response at that time.
func TestBackendAnswersBeforeTheBodyEnds(t *testing.T) {
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			s := newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				w.WriteHeader(http.StatusOK) // Go's client stops sending a body over HTTP/2 after another status
				_ = http.NewResponseController(w).Flush()
				_, _ = io.Copy(io.Discard, r.Body)
			}), limit.Options{ChargeIf: limit.NotServerError, Context: true})
			srv, client := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				s.ServeHTTP(w, r)
			}), http2)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					// Longer than BodyLimit allows, which notices at the end.
					body := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), strings.NewReader("x"))
					resp, err := client.Post(srv.URL, "text/plain", body)
					if err != nil {
						return // the connection is closed while the client sends
					}
					defer resp.Body.Close()
					_, _ = io.Copy(io.Discard, resp.Body)
					if resp.StatusCode != 200 && resp.StatusCode != 413 {
						t.Errorf("status %d, want that of the backend, 200, or 413", resp.StatusCode)
					}
					if lines := resp.Header["X-Request-Id"]; len(lines) != 1 {
						t.Errorf("X-Request-Id: %q, want one", lines)
					}
				})
			}
			all.Wait()
		})
	}
}

// sends is a backend that answers every request with these bytes.
func sends(t *testing.T, response string) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					io.WriteString(conn, response)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// net/http panics if a handler sends such a status, or sends 200 after 1xx. The largest
// comes over HTTP/2.
func TestImpossibleStatus(t *testing.T) {
	for status, want := range map[int]int{-200: 502, 0: 502, 99: 502, 103: 502, 199: 502, 200: 200, 999: 999, 1000: 502} {
		proxy := toURL("http://192.0.2.1")
		proxy.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: make(http.Header), Body: http.NoBody}, nil
		})
		srv, client := listen(t, newStack(t, proxy, limit.Options{ChargeIf: limit.NotServerError}), false)
		resp, body := send(t, client, "GET", srv.URL, nil)
		if resp.StatusCode != want || want == 502 && !strings.HasPrefix(body, `{"code":"bad_gateway",`) {
			t.Errorf("status %d: %d %s, want %d", status, resp.StatusCode, body, want)
		}
		wantMiddlewares(t, resp.Header)
	}
}

// The backend gets no trailers of the client, and is not told to wait for any.
func TestTrailersOfTheClient(t *testing.T) {
	srv, _ := listen(t, newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Trailer)
	}), limit.Options{}), false)
	for _, announcement := range []string{"Trailer: X-Sum\r\n", ""} {
		_, body := raw(srv, "POST / HTTP/1.1\r\nHost: x\r\n"+announcement+"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n")
		if body != "map[]" {
			t.Errorf("announced with %q, the backend gets the trailers %s, want none", announcement, body)
		}
	}
}

// A field of middlewares is not contradicted in the trailers.
func TestTrailersOfTheBackend(t *testing.T) {
	const fields = "X-RateLimit-Remaining: 5\r\nX-Request-Id: b\r\nAlt-Svc: h3=\":8443\"\r\nCache-Control: public\r\nServer-Timing: db;dur=5\r\nX-Rows: 17\r\n"
	const framing = "Content-Length: 9\r\nTransfer-Encoding: gzip\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n" +
		"Content-Range: bytes 0-1/9\r\nHost: a\r\nTe: trailers\r\nTrailer: X-A\r\nUpgrade: h2c\r\nKeep-Alive: max=1\r\nProxy-Connection: close\r\nProxy-Authenticate: Basic\r\n"
	for name, announcement := range map[string]string{
		"announced":         "Trailer: X-RateLimit-Remaining, X-Request-Id, Alt-Svc, Cache-Control, Server-Timing, X-Rows\r\n",
		"announced in part": "Trailer: X-Rows, X-Request-Id\r\n",
		"not announced":     "",
	} {
		for protocol, http2 := range protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				response := "HTTP/1.1 200 OK\r\n" + announcement + "Transfer-Encoding: chunked\r\n\r\n4\r\npets\r\n0\r\n" + fields + framing + "\r\n"
				s := newStack(t, toURL(sends(t, response)), limit.Options{})
				srv, client := listen(t, s, http2)
				resp, body := send(t, client, "GET", srv.URL, nil)
				if got, want := text(resp.Trailer), "Server-Timing: db;dur=5\nX-Rows: 17"; body != "pets" || got != want {
					t.Errorf("%q with the trailers\n%s\nwant pets with\n%s", body, got, want)
				}
				wantMiddlewares(t, resp.Header)
				srv, client = listen(t, newGateway(toURL(sends(t, response)), nil), http2)
				resp, _ = send(t, client, "GET", srv.URL, nil)
				if resp.Trailer.Get("Alt-Svc") != "" || resp.Trailer.Get("Content-Length") != "" || resp.Trailer.Get("X-RateLimit-Remaining") != "5" || resp.Trailer.Get("X-Rows") != "17" {
					t.Errorf("without middlewares: the trailers\n%s\nwant all but Alt-Svc and framing", text(resp.Trailer))
				}
			})
		}
	}
}
