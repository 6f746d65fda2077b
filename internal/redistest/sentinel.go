//go:build unix

package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// MasterName is the name of the master in the configuration of the sentinel.
const MasterName = "master"

// Replicated is a master, its replica, and a sentinel that promotes the replica when
// the master has not answered for half a second.
type Replicated struct {
	Master, Replica, Sentinel *Server
}

// StartReplicated starts them, and waits until the replica is in sync.
func StartReplicated(t testing.TB) *Replicated {
	t.Helper()
	r := &Replicated{Master: Start(t)}
	host, port, _ := net.SplitHostPort(r.Master.Addr)
	r.Replica = Start(t, "--replicaof", host+" "+port)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\nsentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 5000\n",
		MasterName, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Sentinel = start(t, func(port string) []string {
		return []string{config, "--sentinel", "--port", port, "--bind", "127.0.0.1"}
	})
	r.Replica.awaitSync()
	r.Master.await("info replication", "state=online")
	for _, command := range [][2]string{{"set written 1", "1"}, {"del written", "0"}} { // some time later writes reach the replica
		if _, err := r.Master.Do(strings.Fields(command[0])...); err != nil {
			t.Fatal(err)
		}
		r.Replica.await("exists written", command[1])
	}
	r.Sentinel.await("info sentinel", "slaves=1")
	return r
}

// awaitSync waits until a replica is in sync with its master.
func (s *Server) awaitSync() {
	s.t.Helper()
	s.await("info replication", "role:slave", "master_link_status:up")
}
