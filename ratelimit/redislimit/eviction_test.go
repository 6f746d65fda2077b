//go:build unix

package redislimit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A book is a log that can be read while it is written.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestEvictionIsSaid(t *testing.T) {
	for _, test := range []struct {
		policy, memory string
		said           bool
	}{
		{"allkeys-lru", "100mb", true},
		{"volatile-ttl", "100mb", true},
		{"noeviction", "100mb", false},
		{"allkeys-lru", "0", false}, // there is no limit, and so nothing to evict
	} {
		s := redistest.Start(t, "--maxmemory-policy", test.policy, "--maxmemory", test.memory)
		var log book
		l, err := redislimit.New(s.Client(), redislimit.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := l.Take(ctx, fmt.Sprint(i), lasting(1), 1); err != nil {
				t.Fatal(err)
			}
		}
		for deadline := time.Now().Add(10 * time.Second); test.said && log.String() == "" && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if !test.said { // not by the second time either
			if err := redislimit.WarnOfEviction(l, s.Client()); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n > 1 || (n == 1) != test.said {
			t.Errorf("policy %s with maxmemory %s: %d warnings:\n%s", test.policy, test.memory, n, log.String())
		}
		if test.said && (!strings.Contains(log.String(), test.policy) || !strings.Contains(log.String(), s.Addr)) {
			t.Errorf("the warning does not name the policy %s and the server %s: %s", test.policy, s.Addr, log.String())
		}
	}
}
