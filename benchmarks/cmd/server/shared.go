package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// errNoServers says what the section needs.
var errNoServers = errors.New("PostgreSQL (initdb, postgres) and redis-server must be on this machine")

// measureShared is measureRequests with PostgreSQL and Redis, which several servers can
// share, on the same machine.
func measureShared(b *bench) error {
	binaries := postgresBinaries()
	if _, err := exec.LookPath("redis-server"); err != nil || binaries == "" {
		if b.long || os.Getenv("GATEHOUSE_REQUIRE_SERVERS") == "1" {
			return errNoServers
		}
		fmt.Fprintln(os.Stderr, "skipped:", errNoServers)
		return nil
	}
	postgres, database, err := b.startPostgres(binaries)
	if err != nil {
		return err
	}
	redis, limits, err := b.startRedis()
	if err != nil {
		return err
	}
	s, err := b.newPetstore(roomyNetworks + "database: " + database + "\nredis: " + limits + "\n")
	if err != nil {
		return err
	}
	return b.compare(s, table{
		title: "Requests a second with PostgreSQL and Redis",
		text: "The same with PostgreSQL and Redis in the place of SQLite and of the embedded limiter. They run on the same processors, PostgreSQL with " +
			"its default settings and Redis without persistence; the last columns have the processor time that they need for a request.",
	}, postgres, redis)
}

// postgresBinaries returns the directory of PostgreSQL's programs, or "".
func postgresBinaries() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(target)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian keeps them
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1]) // the newest: there is none before 10 any more
}

// startPostgres starts a server with a new database and returns its URL.
func (b *bench) startPostgres(binaries string) (p *process, url string, err error) {
	// PostgreSQL refuses to run as root.
	var as []string
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, "", err
		}
		if uid, err = strconv.Atoi(u.Uid); err != nil {
			return nil, "", err
		}
		if gid, err = strconv.Atoi(u.Gid); err != nil {
			return nil, "", err
		}
		// The kernel forgets the signal of endWithParent when the user changes.
		as = []string{"setpriv", "--pdeathsig", "QUIT", "--reuid", u.Uid, "--regid", u.Gid, "--clear-groups"}
	}
	dir, err := os.MkdirTemp("", "server-bench-postgres")
	if err != nil {
		return nil, "", err
	}
	b.closers = append(b.closers, removal(dir))
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, "", err
	}
	data := filepath.Join(dir, "data")
	if _, err := b.command(dir, append(slices.Clip(as), filepath.Join(binaries, "initdb"), "-D", data,
		"--username", "petstore", "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")...); err != nil {
		return nil, "", err
	}
	host, port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	p, err = b.start("PostgreSQL", dir, nil, nil, append(slices.Clip(as), filepath.Join(binaries, "postgres"), "-D", data,
		"-h", host, "-p", port, "-k", dir)...)
	if err != nil {
		return nil, "", err
	}
	// It answers before it accepts connections.
	return p, "postgres://petstore@" + net.JoinHostPort(host, port) + "/postgres", b.wait(p, func() error {
		_, err := b.command(dir, filepath.Join(binaries, "pg_isready"), "-q", "-h", host, "-p", port)
		return err
	})
}

// startRedis starts a server that keeps nothing and returns its URL.
func (b *bench) startRedis() (p *process, url string, err error) {
	host, port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	p, err = b.start("Redis", b.dir, nil, nil, "redis-server", "--port", port, "--bind", host, "--save", "", "--appendonly", "no")
	if err != nil {
		return nil, "", err
	}
	address := net.JoinHostPort(host, port)
	return p, "redis://" + address, b.wait(p, func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// wait waits until ready returns nil while a process runs.
func (b *bench) wait(p *process, ready func() error) error {
	for begun := time.Now(); ; {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Since(begun) > patience {
			return fmt.Errorf("%s does not answer after %v: %w\n%s", p.name, patience, err, p.out)
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended instead of serving: %w", p.name, p.failed(p.err))
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// freePort returns a free port of the loopback interface.
func freePort() (host, port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer l.Close()
	return net.SplitHostPort(l.Addr().String())
}

// A removal is a directory that Close removes.
type removal string

// Close removes the directory.
func (r removal) Close() error { return os.RemoveAll(string(r)) }
