package server

import (
	"errors"
	"fmt"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

func TestErrorsOfBansWithoutRedis(t *testing.T) {
	other := errors.New("other")
	for _, tt := range []struct {
		name string
		err  error
		want string // "" for the error itself
	}{
		{"only here", fmt.Errorf("%w: %w", failover.ErrLocalOnly, ratelimit.ErrUnavailable), "Redis cannot be used, so A. Repeat the request when Redis can be used again."},
		{"nowhere", fmt.Errorf("x: %w", ratelimit.ErrUnavailable), "Redis cannot be used, so B. Repeat the request when Redis can be used again."},
		{"another error", other, ""},
		{"no error", nil, ""},
	} {
		got := explainBan(tt.err, "A", "B")
		if tt.want == "" {
			if got != tt.err {
				t.Errorf("%s: %v, want it unchanged", tt.name, got)
			}
			continue
		}
		e, ok := errors.AsType[*apierror.Error](got)
		if !ok || e.Status != 503 || e.Message != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("%s: %v, want 503 with %q and its cause", tt.name, got, tt.want)
		}
	}
}
