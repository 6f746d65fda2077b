package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Interval is the time from one save to the next. It is shorter than the second
// that a killed process may lose, because a save takes time itself.
const Interval = 500 * time.Millisecond

// lastSave is how long the last save may take, when a process ends.
const lastSave = 10 * time.Second

// A Task saves something again and again.
type Task struct {
	Name string                      // what is saved, for people
	Save func(context.Context) error // saves what changed since it last returned nil
}

// A Saver carries out tasks every [Interval], each by itself, so that none waits for
// the database of another. One that fails is tried again, and the log says when
// it begins to fail and when that is over. A Saver is made by [StartSaver] and safe
// for concurrent use.
type Saver struct {
	logger *slog.Logger
	tasks  []Task
	stop   chan struct{}  // closed to end the goroutines
	loops  sync.WaitGroup // one for each task

	mu       sync.Mutex
	failures []error // of each task, what its last save came to
}

// StartSaver starts to carry out the tasks, until Close.
func StartSaver(logger *slog.Logger, tasks ...Task) *Saver {
	s := &Saver{logger: logger, tasks: tasks, failures: make([]error, len(tasks)), stop: make(chan struct{})}
	for i := range tasks {
		s.loops.Go(func() { s.loop(i) })
	}
	return s
}

func (s *Saver) loop(i int) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.save(context.Background(), i)
		case <-s.stop:
			return
		}
	}
}

func (s *Saver) save(ctx context.Context, i int) {
	task := s.tasks[i]
	err := task.Save(ctx)
	if err != nil {
		err = fmt.Errorf("%s cannot be saved: %w", task.Name, err)
	}
	s.mu.Lock()
	before := s.failures[i]
	s.failures[i] = err
	s.mu.Unlock()
	switch {
	case before == nil && err != nil:
		s.logger.Error("saving fails, and is tried again", slog.String("what", task.Name), slog.Any("error", err))
	case before != nil && err == nil:
		s.logger.Info("saving works again", slog.String("what", task.Name))
	}
}

// Err returns what cannot be saved at present and why, or nil.
func (s *Saver) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

// Close ends the goroutines, carries out each task once more, and returns what could
// not be saved. It must be called once.
func (s *Saver) Close() error {
	close(s.stop)
	s.loops.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), lastSave)
	defer cancel()
	for i := range s.tasks {
		s.save(ctx, i)
	}
	return s.Err()
}
