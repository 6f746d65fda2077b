//go:build unix

package redislimit_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// documentedUser returns the rule of the access list in the documentation of New.
func documentedUser(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("limiter.go")
	must(t, err)
	rule := regexp.MustCompile(`(?s)ACL SETUSER gatehouse (.*?)\n//\n`).FindSubmatch(text)
	if rule == nil {
		t.Fatal("the documentation of New has no ACL SETUSER")
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(string(rule[1]), "//", " ")), " ")
}

// setUser makes the documented user on a server, with the password "secret".
func setUser(t *testing.T, s *redistest.Server, rule string) {
	t.Helper()
	args := []any{"acl", "setuser", "gatehouse"}
	for field := range strings.FieldsSeq(strings.Replace(rule, ">PASSWORD", ">secret", 1)) {
		args = append(args, field)
	}
	if err := clientOf(t, s).Do(ctx, args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// everything has the engine do all that it can.
func everything(l *redislimit.Limiter) error {
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Minute}
	plan := ratelimit.MustPlan("", penalty, ratelimit.Quota{Limit: 2, Window: fixedwindow.MaxLength})
	for i := range 30 { // in every part of a cluster
		subject := fmt.Sprint("subject ", i)
		var d ratelimit.Decision
		take := func() (err error) { d, err = l.Take(ctx, subject, plan, 1); return err }
		for _, step := range []struct {
			what string
			do   func() error
		}{
			{"Take", take},
			{"Adjust", func() error { return l.Adjust(ctx, subject, &d, 0, "") }},
			{"a held Take", func() (err error) { d, err = l.Hold("id", time.Hour).Take(ctx, subject, plan, 1); return err }},
			{"settling it", func() error { return l.Adjust(ctx, subject, &d, 0, "id") }},
			{"Lease", func() error { return second(l.Lease(ctx, subject, plan, 1, engine.Terms{Back: &d})) }},
			{"the first Take", take}, {"the second", take}, {"a strike", take}, {"a ban", take},
			{"Adjust with an id", func() error { return addUsage(l, "id", subject, plan, [4]int64{1}, time.Now()) }},
			{"Ban", func() error { return l.Ban(ctx, subject, time.Hour, "") }},
			{"Peek", func() error { return second(l.Peek(ctx, subject, plan)) }},
		} {
			if err := step.do(); err != nil {
				return fmt.Errorf("%s: %w", step.what, err)
			}
		}
		if d.Outcome != ratelimit.Banned {
			return fmt.Errorf("%s: %v, want that it is banned", subject, d.Outcome)
		}
	}
	if _, err := l.Peek(ctx, "unknown", plan); err != nil {
		return fmt.Errorf("Peek: %w", err)
	}
	bans, err := l.Bans(ctx)
	if err != nil || len(bans) != 30 {
		return fmt.Errorf("Bans: %d, %w", len(bans), err)
	}
	for _, ban := range bans {
		if unbanned, err := l.Unban(ctx, ban.Subject); err != nil || !unbanned {
			return fmt.Errorf("Unban: %v, %w", unbanned, err)
		}
		if err := l.Reset(ctx, ban.Subject); err != nil {
			return fmt.Errorf("Reset: %w", err)
		}
	}
	return nil
}

// commandsOf returns the commands that a rule allows.
func commandsOf(rule string) (commands []string) {
	for field := range strings.FieldsSeq(rule) {
		if strings.HasPrefix(field, "+") {
			commands = append(commands, field[1:])
		}
	}
	return commands
}

func TestAccessList(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	testAccessList(t, documentedUser(t)+" +select", []*redistest.Server{s}, func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: s.Addr, Username: "gatehouse", Password: "secret", DB: 3})
	})
}

// testAccessList has a user who may do what the documentation says use the engine, and
// take any of that away.
func testAccessList(t *testing.T, rule string, servers []*redistest.Server, connect func() redis.UniversalClient) {
	try := func(rule string) error {
		for _, s := range servers {
			must(t, clientOf(t, s).Do(ctx, "acl", "deluser", "gatehouse").Err())
			setUser(t, s, rule)
			must(t, clientOf(t, s).ScriptFlush(ctx).Err())
		}
		c := connect()
		defer c.Close()
		l, err := redislimit.New(c, redislimit.Options{})
		must(t, err)
		return everything(l)
	}
	if err := try(rule); err != nil {
		t.Errorf("with the documented rule %s: %v", rule, err)
	}
	for _, command := range commandsOf(rule) {
		if err := try(rule + " -" + command); (err != nil) != needed(len(servers) > 1, command) {
			t.Errorf("without %s: %v, want an error if and only if it is needed", command, err)
		}
	}
}

// needed tells whether everything takes the command. The client sends ASKING where a
// slot moves.
func needed(cluster bool, command string) bool {
	switch command {
	case "cluster|slots":
		return cluster
	case "asking":
		return false
	}
	return true
}

func testAccessListWhileASlotMoves(t *testing.T, cluster *redistest.Cluster) {
	testenv.Long(t, "moves a slot of a cluster")
	rule := documentedUser(t)
	for _, test := range []struct {
		rule string
		ok   bool
	}{{rule, true}, {rule + " -asking", false}} {
		for _, s := range cluster.Masters {
			setUser(t, s, test.rule)
		}
		c := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{cluster.Masters[0].Addr}, Username: "gatehouse", Password: "secret",
		})
		defer c.Close()
		l, err := redislimit.New(c, redislimit.Options{})
		must(t, err)
		subjects, slot := neighbours(t, l, clientOfCluster(t, cluster), 6)
		from := owner(t, cluster, slot)
		m := cluster.Migrate(slot, from, (from+1)%3)
		m.Keys(100)
		err = redislimit.TakeAll(l, lasting(5))(subjects)
		m.Finish()
		if (err == nil) != test.ok {
			t.Errorf("subjects of a slot that moves, with the rule %s: %v", test.rule, err)
		}
	}
}
