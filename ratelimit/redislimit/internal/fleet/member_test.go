//go:build unix

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/lease"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A member is one process of a fleet: this test, which the variable memberVariable of the
// environment makes one.
type member struct {
	Addr    string // of the server
	Dir     string // of the ledgers
	Number  int
	Members int
	Began   int64
	Slow    float64 // how much slower its clock is than that of the server, as a factor

	ledger  ledger
	limiter *lease.Limiter
}

const memberVariable = "GATEHOUSE_FLEET_MEMBER"

// beMember makes requests until the standard input ends, and then says what the limiter did.
func beMember(config string) error {
	var m member
	if err := json.Unmarshal([]byte(config), &m); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: m.Addr, ReadTimeout: 500 * time.Millisecond, DialerRetries: 1})
	shared, err := redislimit.New(client, redislimit.Options{})
	if err != nil {
		return err
	}
	if m.limiter, err = lease.New(stretched{shared, m.Slow}); err != nil {
		return err
	}
	if m.ledger, err = openLedger(m.Dir, m.Number); err != nil {
		return err
	}
	end, stop := context.WithCancelCause(context.Background())
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		stop(err)
	}()
	var load sync.WaitGroup
	for i := range subjects {
		load.Go(func() { m.load(end, i, stop) })
	}
	load.Wait()
	m.limiter.Close()
	if err := context.Cause(end); !errors.Is(err, context.Canceled) {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m.limiter.Stats())
}

// load makes the requests for a subject that are due, ten milliseconds' at once. What is not
// made when its window ends is not made at all.
func (m *member) load(end context.Context, i int, stop context.CancelCauseFunc) {
	s := &subjects[i]
	name, plan := fmt.Sprint("subject ", i), s.plan()
	now := time.Now().UnixNano()
	window, made := now/s.length(), s.due(now, m.Number, m.Members)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-end.Done():
			return
		case <-tick.C:
		}
		now = time.Now().UnixNano()
		if w := now / s.length(); w != window {
			window, made = w, 0
		}
		for due := s.due(now, m.Number, m.Members); made < due && now/s.length() == window; made++ {
			d, err := m.limiter.Take(context.Background(), name, plan, s.cost)
			if err != nil && !errors.Is(err, ratelimit.ErrUnavailable) {
				stop(err)
				return
			}
			now = time.Now().UnixNano()
			m.ledger.add(i, window-m.Began/s.window, column(d, err, now/s.length()-window))
		}
	}
}

// column returns where to count a request during which so many windows began.
func column(d ratelimit.Decision, err error, began int64) int {
	switch {
	case err != nil:
		return unplaced
	case d.Allowed() && began == 0:
		return admitted
	case d.Allowed() && began == 1:
		return crossing
	case began == 0:
		return denied
	}
	return unplaced
}

// A stretched engine says that the first window of a decision lasts longer by a factor: as if
// the clock of the process were slower than that of the server.
type stretched struct {
	*redislimit.Limiter
	factor float64
}

func (e stretched) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d, err := e.Limiter.Take(ctx, subject, p, cost)
	stretch(&d, e.factor)
	return d, err
}

func (e stretched) Lease(ctx context.Context, subject string, p *ratelimit.Plan, cost int64, terms engine.Terms) (ratelimit.Decision, error) {
	if terms.Back != nil {
		back := *terms.Back
		stretch(&back, 1/e.factor)
		terms.Back = &back
	}
	d, err := e.Limiter.Lease(ctx, subject, p, cost, terms)
	stretch(&d, e.factor)
	return d, err
}

func stretch(d *ratelimit.Decision, factor float64) {
	if factor != 1 {
		ends := min(d.States[0].Reset, d.States[1].Reset) * int64(time.Second)
		d.Time = ends - int64(float64(ends-d.Time)*factor)
	}
}
