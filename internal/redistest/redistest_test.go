//go:build unix

package redistest_test

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/redistest"
)

// want fails the test unless a command has the reply.
func want(t *testing.T, s *redistest.Server, reply string, command ...string) {
	t.Helper()
	if got, err := s.Do(command...); err != nil || !slices.Equal(got, []string{reply}) {
		t.Errorf("%v: got %q, %v, want %q", command, got, err, reply)
	}
}

func TestServer(t *testing.T) {
	s := redistest.Start(t)
	want(t, s, "OK", "set", "key", "value")
	want(t, s, "value", "get", "key")
	s.Restart()
	want(t, s, "0", "dbsize")
	if got, err := s.Do("get"); err == nil || !strings.Contains(err.Error(), "wrong number of arguments") {
		t.Errorf("a wrong command: got %q, %v, want the server's error", got, err)
	}
	s.Kill()
	if _, err := s.Do("ping"); err == nil {
		t.Error("a server that was killed answers")
	}
}

func TestAppendOnlyFile(t *testing.T) {
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	want(t, s, "OK", "set", "key", "value")
	s.Restart()
	want(t, s, "value", "get", "key")
}

func TestCluster(t *testing.T) {
	c := redistest.StartClusterWithReplicas(t)
	c.Migrate(0, 0, 1).Finish()
	for i, master := range c.Masters {
		want(t, master, "0", "cluster", "countkeysinslot", "0")
		if got, err := master.Do("cluster", "shards"); err != nil || !slices.Contains(got, c.Replicas[i].Addr[strings.LastIndex(c.Replicas[i].Addr, ":")+1:]) {
			t.Errorf("the shards are %v, %v, want the replica %s in them", got, err, c.Replicas[i].Addr)
		}
	}
}

func TestReplicated(t *testing.T) {
	r := redistest.StartReplicated(t)
	want(t, r.Master, "OK", "set", "key", "value")
	deadline := time.Now().Add(time.Minute)
	for got := []string{""}; got[0] != "value"; got, _ = r.Replica.Do("get", "key") {
		if time.Now().After(deadline) {
			t.Fatalf("the replica has %q, want what the master has", got)
		}
	}
	_, port, _ := net.SplitHostPort(r.Master.Addr)
	if got, err := r.Sentinel.Do("sentinel", "get-master-addr-by-name", redistest.MasterName); err != nil || got[1] != port {
		t.Errorf("the sentinel names the master %v, %v, want %s", got, err, r.Master.Addr)
	}
}

// through sends a PING through a proxy, and returns what arrives of the answer.
func through(t *testing.T, p *redistest.Proxy) string {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("PING\r\n"))
	answer, _ := bufio.NewReader(conn).ReadString('\n')
	return answer
}

func TestProxy(t *testing.T) {
	const pong = "+PONG\r\n"
	p := redistest.StartProxy(t, redistest.Start(t).Addr)
	for bytes := range len(pong) {
		if got := through(t, p); got != pong {
			t.Fatalf("through a proxy arrived %q, want %q", got, pong)
		}
		p.CutAfter(bytes)
		if got := through(t, p); got != pong[:bytes] {
			t.Errorf("of a reply that was cut after %d bytes arrived %q", bytes, got)
		}
	}
	if n := p.Cuts(); n != int64(len(pong)) {
		t.Errorf("%d cuts were made, want %d", n, len(pong))
	}
	const delay = 20 * time.Millisecond
	p.Slow(delay)
	start := time.Now()
	if got, took := through(t, p), time.Since(start); got != pong || took < delay {
		t.Errorf("a reply that is held back for %v: got %q after %v", delay, got, took)
	}
}
