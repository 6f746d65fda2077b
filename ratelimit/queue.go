package ratelimit

import (
	"container/list"
	"time"
)

const (
	// longestSleep is how long a request sleeps at most before it asks the engine
	// again, to notice units that were given back, a reset or an unban.
	longestSleep = time.Minute

	// shortestSleep keeps an engine with a wrong RetryAfter from being asked in a busy
	// loop.
	shortestSleep = time.Millisecond
)

// A queue holds the requests that wait for one subject. Its fields are guarded by
// Waiter.mu.
type queue struct {
	tickets list.List // of *ticket
	denial  Decision  // the latest
	until   time.Time // when its RetryAfter is over
	past    bool      // the denied request has left, and the engine has not decided the next
}

// A ticket is the place of one request in a queue.
type ticket struct {
	subject  string
	queue    *queue
	place    *list.Element
	deadline time.Time     // of the request's context; zero: none
	called   chan struct{} // closed once the ticket is first or has failed
	failure  error         // why it has failed; set before called is closed
	pause    time.Duration // how long it sleeps, once it is first, before it calls the engine
}

// join puts a request at the end of the queue of subject. If there is none, it
// returns nil, or, with a denial, opens one, in which the request is first.
func (w *Waiter) join(subject string, deadline time.Time, denial *Decision) *ticket {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[subject]
	if q == nil && denial == nil {
		return nil
	}
	opens := q == nil
	if opens {
		q = new(queue)
		w.queues[subject] = q
	}
	t := &ticket{subject: subject, queue: q, deadline: deadline, called: make(chan struct{})}
	t.place = q.tickets.PushBack(t)
	switch {
	case opens:
		t.deny(denial)
		close(t.called)
	case t.tooLate():
		t.fail(errTooLate)
	}
	return t
}

// leave takes t out of its queue, and calls the next ticket if t was first.
func (w *Waiter) leave(t *ticket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := t.queue
	first := q.tickets.Front() == t.place
	q.tickets.Remove(t.place) // does nothing if t has failed
	if next := q.tickets.Front(); next != nil && first {
		q.past = true
		close(next.Value.(*ticket).called)
	}
	if q.tickets.Len() == 0 && w.queues[t.subject] == q {
		delete(w.queues, t.subject)
	}
}

// denied notes the denial of t, which is first, and fails the tickets behind it whose
// deadline passes before they can be admitted.
func (w *Waiter) denied(t *ticket, d *Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.deny(d)
	for e := t.place.Next(); e != nil; {
		behind := e.Value.(*ticket)
		e = e.Next()
		if behind.tooLate() {
			behind.fail(errTooLate)
		}
	}
}

// failOthers fails all tickets behind t, which is first.
func (w *Waiter) failOthers(t *ticket, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e := t.place.Next(); e != nil; e = t.place.Next() {
		e.Value.(*ticket).fail(err)
	}
}

// latest returns the latest denial in the queue of t, as it is now.
func (w *Waiter) latest(t *ticket) Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := t.queue.denial
	d.RetryAfter = max(time.Until(t.queue.until), 1)
	return d
}

// deny notes the denial of t, which is first.
func (t *ticket) deny(d *Decision) {
	t.pause = min(max(d.RetryAfter, shortestSleep), longestSleep)
	t.queue.denial, t.queue.until, t.queue.past = *d, time.Now().Add(d.RetryAfter), false
}

// tooLate reports whether the deadline of t passes before the first ticket can be
// admitted, as far as that is known: a request that left may have cost more.
func (t *ticket) tooLate() bool {
	return !t.queue.past && !t.deadline.IsZero() && !t.deadline.After(t.queue.until)
}

// fail takes t, which is not first, out of its queue and ends its waiting.
func (t *ticket) fail(err error) {
	t.failure = err
	t.queue.tickets.Remove(t.place)
	close(t.called)
}
