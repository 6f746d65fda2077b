package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// script returns the address of a server that answers the first request of each connection
// with pieces, one packet each, and then closes it.
func script(t *testing.T, pieces ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				for _, piece := range pieces {
					io.WriteString(c, piece)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestALoadWantsTheStatus(t *testing.T) {
	address := host(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
		w.Write([]byte("pets"))
	})
	l := load{address: address, request: get("/", ""), total: 200}
	took, err := l.run(t.Context())
	if err != nil || len(took) != 200 {
		t.Errorf("run = %d latencies, %v, want 200", len(took), err)
	}
	l.request = get("/missing", "")
	_, err = l.run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "GET /missing: answered with 404, want 200:\nHTTP/1.1 404 Not Found\r\n") {
		t.Errorf("run = %v, want an error about the status 404 and the answer", err)
	}
}

// A server that stalls delays the requests that could not be sent meanwhile, and their
// latencies count the whole delay (no coordinated omission).
func TestAStallCountsForAllRequestsThatWereDue(t *testing.T) {
	const stall = 50 * time.Millisecond
	var first sync.Once
	var end time.Time
	address := host(t, func(w http.ResponseWriter, r *http.Request) {
		first.Do(func() { end = time.Now().Add(stall) })
		time.Sleep(time.Until(end))
	})
	l := load{address: address, request: get("/", ""), perS: 5000, duration: 2 * stall}
	took, err := l.run(t.Context())
	must(t, err)
	slow := 0
	for _, d := range took {
		if d >= stall/2 {
			slow++
		}
	}
	// That is 125 requests, of which only 64 could be sent.
	if want := int(l.perS * (stall / 2).Seconds()); slow < want {
		t.Errorf("%d requests took at least %v, want %d: those that were due in the first half of a stall of %v", slow, stall/2, want, stall)
	}
	if want := int(l.perS * l.duration.Seconds()); len(took) != want {
		t.Errorf("%d requests in %v, want %d", len(took), l.duration, want)
	}
}

func TestAConnectionSendsEvery64thRequest(t *testing.T) {
	for name, l := range map[string]load{
		"at a rate": {perS: 10_000, total: 1000},
		// More are due at once than there are connections.
		"at a rate that is too high": {perS: 1e6, total: 1000},
		"as fast as possible":        {total: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			next := map[string]int{} // of each connection
			l.address = host(t, func(w http.ResponseWriter, r *http.Request) {
				var n int
				fmt.Sscanf(r.URL.Path, "/%d", &n)
				mu.Lock()
				defer mu.Unlock()
				if want, known := next[r.RemoteAddr]; known && n != want || !known && n >= connections {
					t.Errorf("a connection has sent request %d, want %d", n, want)
				}
				next[r.RemoteAddr] = n + connections
			})
			l.request = get("/0000", "")
			l.vary = func(request []byte, n int) { copy(request[len("GET /"):], fmt.Sprintf("%04d", n)) }
			if took, err := l.run(t.Context()); err != nil || len(took) != l.total {
				t.Errorf("run = %d latencies, %v, want %d", len(took), err, l.total)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(next) != connections {
				t.Errorf("%d connections have sent requests, want %d", len(next), connections)
			}
		})
	}
}

func TestALoadAsFastAsPossibleEndsWithItsDuration(t *testing.T) {
	address := host(t, func(http.ResponseWriter, *http.Request) {})
	took, err := load{address: address, request: get("/", ""), duration: 20 * time.Millisecond}.run(t.Context())
	if err != nil || len(took) == 0 {
		t.Errorf("run = %d latencies, %v, want some", len(took), err)
	}
}

func TestAnswersInPieces(t *testing.T) {
	body := strings.Repeat("x", 300<<10) // more than is read at once
	address := host(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		io.WriteString(w, body)
	})
	took, err := load{address: address, request: get("/", ""), total: 500}.run(t.Context())
	if err != nil || len(took) != 500 {
		t.Errorf("long answers: run = %d latencies, %v, want 500", len(took), err)
	}
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npets"
	address = host(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { c.Close() })
		for _, b := range []byte(answer) {
			c.Write([]byte{b})
		}
	})
	if took, err = (load{address: address, request: get("/", ""), total: 64}).run(t.Context()); err != nil || len(took) != 64 {
		t.Errorf("answers in bytes: run = %d latencies, %v, want 64", len(took), err)
	}
}

func TestARequestForWhichTheSocketHasNoRoom(t *testing.T) {
	length := 32 << 20
	address := host(t, func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != int64(length) {
			t.Errorf("the server has read %d bytes, %v, want %d", n, err, length)
		}
	})
	r := request{method: "POST", path: "/", body: strings.Repeat("x", length), status: 200}
	if took, err := (load{address: address, request: r, total: 2}).run(t.Context()); err != nil || len(took) != 2 {
		t.Errorf("run = %d latencies, %v, want 2", len(took), err)
	}
}

func TestWhatALoadDoesNotAccept(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npets"
	for name, tt := range map[string]struct {
		pieces []string
		want   string
	}{
		"two answers in one piece": {[]string{answer + answer}, "the server sent what is not an answer to any request:\nHTTP/1.1 200 OK"},
		"a close after an answer":  {[]string{answer}, "the server has closed the connection before an answer"},
		"a close without any":      {nil, "the server has closed the connection before an answer"},
		"half an answer":           {[]string{"HTTP/1.1 2"}, "the server has closed the connection after a part of an answer:\nHTTP/1.1 2"},
		"half a body":              {[]string{answer[:len(answer)-1]}, "the server has closed the connection after 3 of 4 bytes of the body"},
		"no HTTP":                  {[]string{"what do you mean?\r\n\r\n"}, "the answer does not begin with HTTP/1.1 and a status:\nwhat do you mean?"},
	} {
		t.Run(name, func(t *testing.T) {
			// The last request of the connection that fails is far away.
			l := load{address: script(t, tt.pieces...), request: get("/", ""), perS: 1, duration: time.Hour}
			if _, err := l.run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "GET /: "+tt.want) {
				t.Errorf("run = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestALoadEndsWithItsContext(t *testing.T) {
	address := host(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := (load{address: address, request: get("/", ""), total: 64}).run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("run = %v, want %v", err, context.Canceled)
	}
}

// What loads a server takes little of the machine from it.
func TestARequestAllocatesNothing(t *testing.T) {
	b := testBench(t)
	bare, err := b.startBare([]answer{{Status: 200, Header: http.Header{"Content-Length": {"4"}}, Body: []byte("pets")}})
	must(t, err)
	allocations := func(total int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := (load{address: bare.addresses[0], request: get("/", ""), perS: 50_000, total: total}).run(t.Context())
		must(t, err)
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	allocations(connections) // whatever is made once
	few, many := allocations(connections), allocations(100*connections)
	if many > few+connections {
		t.Errorf("%d requests made %d allocations, %d made %d, want no more", connections, few, 100*connections, many)
	}
}
