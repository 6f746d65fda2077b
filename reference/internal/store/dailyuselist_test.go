package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A list in the middle of a save sees each request once.
func TestAListDuringASaveIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := store.NewDailyCounter(at(noon))
		d.Count("ada", true)
		db := &slow{release: make(chan struct{})}
		go d.Task(db).Save(t.Context())
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.List(ctx, db, "ada", noon); !errors.Is(err, context.Canceled) {
			t.Errorf("List whose context has ended = %v, want context.Canceled", err)
		}
		if err := d.Task(db).Save(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Save whose context has ended = %v, want context.Canceled", err)
		}
		go func() {
			time.Sleep(time.Second)
			close(db.release)
		}()
		checkDays(t, d, db, "ada", noon, store.DailyUse{Owner: "ada", Day: midnight, Allowed: 1})
	})
}

// slow stores what is written when it is released.
type slow struct {
	store.DailyUses
	release chan struct{}
	stored  []store.DailyUse
}

func (s *slow) AddDailyUse(_ context.Context, uses ...store.DailyUse) error {
	<-s.release
	s.stored = append(s.stored, uses...)
	return nil
}

func (s *slow) ListDailyUse(context.Context, string, time.Time) ([]store.DailyUse, error) {
	return s.stored, nil
}

func (*slow) PruneDailyUse(context.Context, time.Time) error { return nil }
