package enginetest

import (
	"context"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// TakeAll implements [engine.MultiTaker].
func (m *Model) TakeAll(_ context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := engine.CheckAll(charges, decisions); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	refused := false
	for i, c := range charges {
		decisions[i] = m.peek(c.Subject, c.Plan, c.Cost)
		refused = refused || !decisions[i].Allowed()
	}
	for i, c := range charges {
		if refused && decisions[i].Allowed() {
			decisions[i].Outcome = ratelimit.Spared
		} else {
			decisions[i] = m.take(c.Subject, c.Plan, c.Cost)
		}
	}
	return nil
}
