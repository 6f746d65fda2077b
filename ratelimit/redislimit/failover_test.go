//go:build unix

package redislimit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func TestClusterFailover(t *testing.T) {
	testenv.Long(t, "promotes a replica of a cluster")
	t.Parallel()
	cluster := redistest.StartClusterWithReplicas(t)
	var log testcheck.Log
	l := loggingLimiter(t, clientOfCluster(t, cluster), &log)
	subject, master := subjectOf(t, cluster, l)
	testFailover(t, l, subject, cluster, master)
	if strings.Contains(log.String(), "does not answer") {
		eventually(t, "a line that the requests are decided again", func() bool { return strings.Contains(log.String(), "decided again") })
	}
}

// subjectOf returns a subject with usage, and the master that has it.
func subjectOf(t *testing.T, cluster *redistest.Cluster, l *redislimit.Limiter) (string, *redistest.Server) {
	t.Helper()
	_, err := l.Take(ctx, "a", lasting(1), 1)
	must(t, err)
	for _, m := range cluster.Masters {
		if n, err := clientOf(t, m).DBSize(ctx).Result(); err == nil && n == 1 {
			must(t, l.Reset(ctx, "a"))
			return "a", m
		}
	}
	t.Fatal("no master has the subject")
	return "", nil
}

// testFailover kills the master in the middle of a quota. What its replica knew
// counts after it took over.
func testFailover(t *testing.T, l *redislimit.Limiter, subject string, cluster *redistest.Cluster, master *redistest.Server) {
	t.Helper()
	const limit = 10
	for range 6 {
		if d, err := l.Take(ctx, subject, lasting(limit), 1); err != nil || !d.Allowed() {
			t.Fatalf("before the failover: %v, %v", d.Outcome, err)
		}
	}
	if n, err := clientOf(t, master).Wait(ctx, 1, time.Minute).Result(); err != nil || n != 1 {
		t.Fatalf("the replica is not in step: %d, %v", n, err)
	}
	cluster.Notice()
	master.Kill()
	eventually(t, "a decision after the master was killed", func() bool {
		d, err := l.Peek(ctx, subject, lasting(limit))
		if err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("during the failover: %v, want an error that wraps ErrUnavailable", err)
		}
		if err == nil && d.Remaining() != 4 {
			t.Errorf("after the failover %d of %d remain, want 4", d.Remaining(), limit)
		}
		return err == nil
	})
	admitted, failed := 0, 0
	for range 10 {
		switch d, err := l.Take(ctx, subject, lasting(limit), 1); {
		case err != nil: // a busy machine may miss another master
			failed++
		case d.Allowed():
			admitted++
		}
	}
	if admitted > 4 || admitted+failed < 4 {
		t.Errorf("%d were admitted after the failover and %d failed, want 4 admitted", admitted, failed)
	}
}
