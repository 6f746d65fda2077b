package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// startRedis starts a Redis server that ends with the test, and returns its address.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	path := testenv.Tool(t, "redis-server")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	cmd := exec.Command(path, append([]string{"--port", fmt.Sprint(addr.Port), "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", ""}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", addr.String())
		if err == nil {
			c.Close()
			return addr.String()
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not start: %v", err)
		}
	}
}

// redisDo sends a command as the default user.
func redisDo(t *testing.T, addr, password string, args ...any) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Password: password})
	defer c.Close()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func TestWhyRedisCannotBeUsedIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name     string
		args     []string
		url      string // %s: the address
		password string // of the default user
		setUp    [][]any
		want     string
		fix      []any // what the advice says
	}{
		{"full", []string{"--maxmemory", "100kb"}, "redis://%s", "", nil,
			"Redis is full; raise its maxmemory", []any{"CONFIG", "SET", "maxmemory", "100mb"}},
		{"no password", []string{"--requirepass", "secret"}, "redis://%s", "secret", nil,
			"Redis asks for a password; add it to the URL", []any{"CONFIG", "SET", "requirepass", ""}},
		{"wrong password", []string{"--requirepass", "secret"}, "redis://:hush@%s", "secret", nil,
			"Redis refuses the user or the password in the URL", nil},
		{"no permission", nil, "redis://pets:hush@%s", "", [][]any{{"ACL", "SETUSER", "pets", "on", ">hush", "~other*", "+@all"}},
			"the Redis user lacks a permission; grant it with ACL SETUSER: ~petstore{* +evalsha +eval +time +mget +set +del +exists +zadd +zrem +zremrangebyscore +zrevrange +zscan +expireat +cluster|slots +asking +ping +info",
			append([]any{"ACL", "SETUSER", "pets", "reset", "on", ">hush"}, words(redisPermissions)...)},
		{"replica", []string{"--replicaof", "127.0.0.1 1"}, "redis://%s", "", nil,
			"this Redis server is a replica and refuses writes", []any{"REPLICAOF", "NO", "ONE"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := startRedis(t, tt.args...)
			for _, command := range tt.setUp {
				redisDo(t, addr, tt.password, command...)
			}
			c := testSettings(t)
			c.Redis = []string{fmt.Sprintf(tt.url, addr)}
			var log bytes.Buffer
			s, err := open(t.Context(), c, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), redisBudget: time.Minute}, new(startup))
			if err != nil {
				t.Fatalf("open = %v, want that the server starts without Redis", err)
			}
			defer s.close()
			what, do, _ := strings.Cut(tt.want, "; ")
			if !strings.Contains(log.String(), "Redis cannot be used: "+what) || !strings.Contains(log.String(), do) {
				t.Errorf("the log is %q, want %q in it", log.String(), tt.want)
			}
			err = s.shared.err(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "on_redis_failure: local") {
				t.Errorf("readiness says %v, want %q and what is in force", err, tt.want)
			}
			if strings.Contains(log.String()+fmt.Sprint(err), "hush") {
				t.Errorf("the password shows: %s %v", log.String(), err)
			}
			if tt.fix == nil {
				return
			}
			redisDo(t, addr, tt.password, tt.fix...)
			if err := s.shared.err(t.Context()); err != nil {
				t.Errorf("after the advice was followed, readiness says %v", err)
			}
		})
	}
}

// words returns the words of text as arguments of a command.
func words(text string) []any {
	var args []any
	for _, word := range strings.Fields(text) {
		args = append(args, word)
	}
	return args
}

func TestDiagnoseOfOtherErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379}, Err: errors.New("refused")}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("redislimit: %w", refused), "no connection to Redis at 127.0.0.1:6379; …"},
		{fmt.Errorf("redislimit: %w", context.DeadlineExceeded), "no answer from Redis in time; …"},
		{errors.New("OOM"), "calls to Redis fail; see the error in the log of the server, and the log of Redis"},
	} {
		if got, want := diagnose(tt.err).String(), strings.TrimSuffix(tt.want, "…"); !strings.HasPrefix(got, want) {
			t.Errorf("diagnose(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}
