package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// remaining returns what a caller has left of each quota.
func remaining(t *testing.T, c *contract.Client) []int64 {
	t.Helper()
	var left []int64
	for _, q := range decode[wireUsage](t, c.Get(t, "/v1/usage")).Quotas {
		left = append(left, q.Remaining)
	}
	return left
}

// The caller does not pay for failures of the server, in any of its windows.
func TestFailuresOfTheServerAreRefunded(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(context.Context) error{
		"unavailable": func(context.Context) error { return store.ErrUnavailable },
		"too slow":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"an error":    func(context.Context) error { return errors.New("x") },
		"a panic":     func(context.Context) error { panic("x") },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(c *api.Config) {
				c.Pets = &brokenStore{fail: fail}
				c.Timeout = 10 * time.Millisecond
			})
			// There are more failures than the quota has room for.
			c := s.with(s.key(t, "unlucky", "enterprise", "3/minute", "10/day"))
			for range 3 {
				for _, r := range requests() {
					if resp := c.Do(t, r); resp.StatusCode < 500 {
						t.Errorf("%s %s: %d, want a failure of the server", resp.Method, resp.Target, resp.StatusCode)
					}
				}
			}
			want(t, c.Get(t, "/v1/nothing"), 404, "not_found") // is charged
			if left := fmt.Sprint(remaining(t, c)); left != "[2 9]" {
				t.Errorf("%s are left of 3 a minute and 10 a day after 12 failures and a 404, want [2 9]", left)
			}
		})
	}
}

// A client that hangs up pays for what it asked for.
func TestAbandonedRequestsAreNotRefunded(t *testing.T) {
	t.Parallel()
	hangUp := func() {}
	s := start(t, func(c *api.Config) {
		c.Pets = &brokenStore{fail: func(ctx context.Context) error {
			hangUp()
			<-ctx.Done()
			return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
		}}
	})
	c := s.with(s.key(t, "hasty", "enterprise", "3/minute"))
	ctx, cancel := context.WithCancel(t.Context())
	hangUp = cancel
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/pets", nil)
	r.Header.Set("Authorization", "Bearer "+c.Key)
	s.handler.ServeHTTP(httptest.NewRecorder(), r)
	if left := fmt.Sprint(remaining(t, c)); left != "[2]" {
		t.Errorf("%s are left of 3 a minute after a request that was abandoned, want [2]", left)
	}
}
