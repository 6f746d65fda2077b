package failover

import (
	"context"
	"fmt"
	"sync"
)

// closers is how many entries Close merges at once, so that some which hang do
// not keep it from the others.
const closers = 32

// closeTries is how often Close tries to merge an entry at most.
const closeTries = 3

// Close ends the goroutine that probes and merges, if it runs. If the circuit is
// closed it then merges what is left. It takes at most two seconds, or two
// budgets if they are longer. An error says how much could not be merged in this
// time.
//
// Requests can still be decided, but a circuit that is or becomes open stays
// open, and OnChange is called no more.
func (l *Limiter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.keepers.Wait()

	if l.breaker.state() == CircuitClosed {
		l.mergeAll()
	}
	switch n := l.journal.held.Load(); n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("failover: Close: usage of 1 subject is not merged")
	default:
		return fmt.Errorf("failover: Close: usage of %d subjects is not merged", n)
	}
}

// mergeAll merges what the journal holds, as long as the time lasts.
func (l *Limiter) mergeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), l.patience)
	defer cancel()
	subjects := make(chan string)
	var wg sync.WaitGroup
	for range closers {
		wg.Go(func() {
			for subject := range subjects {
				l.mergeSubject(ctx, subject)
			}
		})
	}
	for _, subject := range l.journal.subjects() {
		subjects <- subject
	}
	close(subjects)
	wg.Wait()
}

// mergeSubject merges what the journal has of subject. What fails is put back
// into the journal.
func (l *Limiter) mergeSubject(ctx context.Context, subject string) {
	for range closeTries {
		e, _ := l.journal.claim(ctx, subject)
		if e == nil || l.mergeOne(ctx, e) == nil {
			return
		}
	}
}
