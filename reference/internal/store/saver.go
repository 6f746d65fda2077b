package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// saveInterval is the time between two saves, unless a task has its own.
const saveInterval = time.Second

// saveShare times the duration of a save is the least interval to the next one, so that saves
// take at most a twentieth of the time.
const saveShare = 20

// lastSaveTimeout bounds the last save when the process ends.
const lastSaveTimeout = 10 * time.Second

// A SaveTask saves something again and again.
type SaveTask struct {
	Name  string                      // what is saved, for the log
	Save  func(context.Context) error // saves what changed since it last returned nil
	Every time.Duration               // the least time from one save to the next; zero: a second
}

// A Saver runs tasks at their intervals, each in a goroutine of its own, so that none waits for
// the database of another. If a save takes longer than a twentieth of its interval, the next one
// comes later. A task that fails runs again, and the log says when it begins to fail and when it
// succeeds again. [StartSaver] returns a Saver. It is safe for concurrent use.
type Saver struct {
	logger *slog.Logger
	tasks  []SaveTask
	stop   chan struct{}  // closed to end the goroutines
	loops  sync.WaitGroup // one for each task

	mu       sync.Mutex
	failures []error // the error of the last save of each task
}

// StartSaver runs the tasks until Close.
func StartSaver(logger *slog.Logger, tasks ...SaveTask) *Saver {
	s := &Saver{logger: logger, tasks: tasks, failures: make([]error, len(tasks)), stop: make(chan struct{})}
	for i := range tasks {
		s.loops.Go(func() { s.loop(i) })
	}
	return s
}

func (s *Saver) loop(i int) {
	every := cmp.Or(s.tasks[i].Every, saveInterval)
	next := time.NewTimer(every)
	defer next.Stop()
	for {
		select {
		case begun := <-next.C:
			interval := every
			if s.save(context.Background(), i) == nil {
				interval = max(every, saveShare*time.Since(begun))
			}
			next.Reset(time.Until(begun.Add(interval)))
		case <-s.stop:
			return
		}
	}
}

func (s *Saver) save(ctx context.Context, i int) error {
	task := s.tasks[i]
	err := task.Save(ctx)
	if err != nil {
		err = fmt.Errorf("cannot save %s: %w", task.Name, err)
	}
	s.mu.Lock()
	before := s.failures[i]
	s.failures[i] = err
	s.mu.Unlock()
	switch {
	case before == nil && err != nil:
		s.logger.Error("cannot save; the server keeps trying", slog.String("what", task.Name), slog.Any("error", err))
	case before != nil && err == nil:
		s.logger.Info("can save again", slog.String("what", task.Name))
	}
	return err
}

// Err returns an error that says what cannot be saved and why, or nil.
func (s *Saver) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

// Close ends the goroutines, runs each task once more, and returns what could not be
// saved. It must be called once.
func (s *Saver) Close() error {
	close(s.stop)
	s.loops.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), lastSaveTimeout)
	defer cancel()
	for i := range s.tasks {
		_ = s.save(ctx, i) // Err has it
	}
	return s.Err()
}
