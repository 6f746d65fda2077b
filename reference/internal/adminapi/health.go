package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthTimeout bounds GET /healthz, which the server answers at once. With the start of the
// command it is less than two seconds, the timeout of some health checks.
const healthTimeout = 1500 * time.Millisecond

// Health returns nil if the process answers GET /healthz. No token is needed.
func (c Client) Health(ctx context.Context) error {
	hangs := fmt.Errorf("no response within %v; the server may hang", healthTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, healthTimeout, hangs)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, "/healthz", nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s; check that it is the admin listener", c.Addr, resp.Status)
	}
	return nil
}

// A Readiness is what GET /readyz answers.
type Readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // "ok", or what is wrong; without the token only "failing"
}

// Readiness returns what the server checks before it reports that it is ready. No token
// is needed. The checks take up to three seconds.
func (c Client) Readiness(ctx context.Context) (r Readiness, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, "/readyz", nil, nil)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return r, fmt.Errorf("cannot read the response of %s: %w", c.Addr, err)
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Checks == nil {
		return r, fmt.Errorf("%s answered %s; check that it is the admin listener", c.Addr, resp.Status)
	}
	return r, nil
}
