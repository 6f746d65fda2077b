//go:build unix

package postgrestest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Pooled returns the URL of a database through PgBouncer in transaction mode, which ends
// with the test. Without PgBouncer on the machine, the test is skipped, or fails if the
// environment has GATEHOUSE_REQUIRE_SERVERS=1.
func Pooled(t testing.TB, databaseURL string) string {
	t.Helper()
	program := pooler()
	switch {
	case program != "":
	case os.Getenv("GATEHOUSE_REQUIRE_SERVERS") == "1":
		t.Fatal("pgbouncer is not on this machine, and GATEHOUSE_REQUIRE_SERVERS=1")
	default:
		t.Skip("skipped: pgbouncer is not on this machine")
	}
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	base, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base.path, "pooler"+strconv.FormatInt(count.Add(1), 10))
	text := fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
server_login_retry = 1
auth_type = any
`, config.Host, config.Port, config.User, config.Password, host, port)
	if err := writeFile(file, text); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-q", file)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: unprivileged()}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := strings.Replace(databaseURL, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), addr, 1)
	if err := eventually(func() error {
		conn, err := pgx.Connect(context.Background(), url)
		if err == nil {
			conn.Close(context.Background())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return url
}

// pooler returns the path of PgBouncer, or "". PATH of a user often lacks it.
func pooler() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
