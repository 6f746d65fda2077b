//go:build unix

package slots_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
)

func TestOnServer(t *testing.T) {
	for name, test := range shared {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, redistest.Start(t).Addr)
		})
	}
}

// startProcess starts another process, which takes two slots.
func startProcess(t *testing.T, addr string) *os.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLOTS_CHILD="+addr)
	_, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil || inErr != nil || outErr != nil {
		t.Fatal(err, inErr, outErr)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if answer, _ := bufio.NewReader(out).ReadString('\n'); answer != "true true\n" {
		t.Fatalf("the process has two slots: %q, want true true", answer)
	}
	return cmd.Process
}

// The documented rights are enough, and none is too much.
func TestAccessList(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	must(t, err)
	rule := regexp.MustCompile(`(?s)ACL SETUSER slots (.*?)\npackage`).FindSubmatch(text)[1]
	rights := strings.Fields(strings.NewReplacer("//", " ", ">PASSWORD", ">secret").Replace(string(rule)))
	s := redistest.Start(t)
	use := func(rights []string) error {
		_, err := s.Do(append([]string{"acl", "setuser", "slots", "reset"}, rights...)...)
		must(t, err)
		for _, what := range []string{"flushall", "script flush"} {
			_, err = s.Do(strings.Fields(what)...)
			must(t, err)
		}
		c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "slots", Password: "secret"})
		defer c.Close()
		p, other := poolOf(t, c, time.Hour), poolOf(t, c, time.Hour)
		leave, err := p.Enter(t.Context(), "ann", 1)
		_, refused := other.Enter(t.Context(), "ann", 1)
		if leave(); len(leases(clientOf(t, s.Addr), "ann")) > 0 {
			err = errors.New("the slot is still taken")
		}
		return cmp.Or(err, refused)
	}
	must(t, use(rights))
	for i, right := range rights {
		if right[0] == '+' && use(slices.Delete(slices.Clone(rights), i, i+1)) == nil {
			t.Errorf("%s is documented, and not needed", right)
		}
	}
}

// A process's leases are renewed while it lives, and end after kill -9, not before.
func TestProcessIsKilled(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := clientOf(t, s.Addr)
	here := newPool(t, s.Addr)
	enter(t, here, "ann", 3, true)
	killed := startProcess(t, s.Addr)
	first := leases(c, "ann")[0]
	eventually(t, "the leases are renewed twice", func() bool {
		return leases(c, "ann")[0] >= first+float64(brief.Milliseconds())/2
	})
	_ = killed.Kill()
	ends := leases(c, "ann")
	for range 2 {
		eventually(t, "a slot is free", func() bool {
			leave, _ := here.Enter(t.Context(), "ann", 3)
			return leave != nil
		})
	}
	// With fewer leases a slot was free: on a slow machine one had ended, and was about to be renewed.
	if now := c.Time(t.Context()).Val().UnixMilli(); len(ends) == 3 && float64(now) < ends[0] {
		t.Fatalf("slots are free at %d, before the leases end: %.0f", now, ends)
	}
}

// Of the masters of a cluster, one that hangs neither ends leases on others nor takes the limit
// from their subjects.
func TestOneMasterHangs(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ReadTimeout: time.Hour})
	t.Cleanup(func() { client.Close() })
	p, other := poolOf(t, client, brief), poolOf(t, client, time.Hour)
	for i := range 40 {
		subject := fmt.Sprint("user:", i)
		enter(t, p, subject, 3, true)
		enter(t, other, subject, 3, true)
		enter(t, other, subject, 3, true)
	}
	hung, live := cluster.Masters[0], cluster.Masters[1]
	on := func(s *redistest.Server) string { // a subject
		keys, err := s.Do("keys", "*")
		if err != nil || len(keys) == 0 {
			t.Fatal(keys, err)
		}
		key := slices.Min(keys)
		return key[strings.Index(key, "{")+1 : len(key)-1]
	}
	stuck, free := on(hung), on(live)
	hung.Stop()
	defer hung.Cont()
	p.Wait(time.Millisecond)
	if _, err := p.Enter(t.Context(), stuck, 9); err == nil {
		t.Error("a master that hangs answers")
	}
	p.Wait(time.Minute)
	if _, err := p.Enter(t.Context(), stuck, 9); !strings.Contains(fmt.Sprint(err), "not answered yet") {
		t.Errorf("beside a call that is late: error %v, want one immediately", err)
	}
	enter(t, p, free, 2, false)
	renewals, last := 0, ""
	eventually(t, "the leases are renewed", func() bool {
		first, err := live.Do("zrange", "inflight:exports:{"+free+"}", "0", "0", "withscores")
		must(t, err)
		if first[1] != last {
			renewals, last = renewals+1, first[1]
		}
		return renewals == 4
	})
}

// BenchmarkEnter takes a slot, and gives it back, beside a script that does nothing.
func BenchmarkEnter(b *testing.B) {
	c := clientOf(b, redistest.Start(b).Addr)
	p, nothing := poolOf(b, c, time.Hour), redis.NewScript("return 1")
	for b.Loop() {
		enter(b, p, "owner:ann", 1, true)()
	}
	begin := time.Now()
	for range b.N {
		nothing.Run(b.Context(), c, []string{"key"})
	}
	b.ReportMetric(float64(time.Since(begin).Nanoseconds())/float64(b.N), "ns/script")
}
