package redistest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Proxy forwards the bytes between a client and a server. It can cut the
// connections, and delay replies.
type Proxy struct {
	Addr string

	to   string
	cut  atomic.Int64 // bytes of replies until the cut; negative: no cut is due
	cuts atomic.Int64
	slow atomic.Int64 // nanoseconds by which a reply is delayed

	mu    sync.Mutex
	conns []net.Conn
}

// StartProxy starts a proxy in front of the server at an address. It ends with the
// test.
func StartProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), to: to}
	p.cut.Store(-1)
	t.Cleanup(func() {
		l.Close()
		p.Cut()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

// Cut closes every connection.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// CutAfter closes every connection after the given number of further bytes of
// replies, mostly in the middle of a reply.
func (p *Proxy) CutAfter(bytes int) { p.cut.Store(int64(bytes)) }

// Cuts returns how many of the cuts that were due have begun.
func (p *Proxy) Cuts() int64 { return p.cuts.Load() }

// Slow delays every reply by a time, from the next one on; 0 ends that.
func (p *Proxy) Slow(d time.Duration) { p.slow.Store(int64(d)) }

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	defer client.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if n == 0 {
			return
		}
		time.Sleep(time.Duration(p.slow.Load()))
		if due := p.cut.Load(); due >= 0 && int64(n) >= due && p.cut.CompareAndSwap(due, -1) {
			_, _ = client.Write(buf[:due])
			p.cuts.Add(1)
			p.Cut()
			return
		} else if due >= 0 {
			p.cut.CompareAndSwap(due, due-int64(n))
		}
		if _, e := client.Write(buf[:n]); e != nil || err != nil {
			return
		}
	}
}
