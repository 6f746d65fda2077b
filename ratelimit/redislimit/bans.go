package redislimit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Ban implements [ratelimit.Banner]. The length is from above zero to
// [ratelimit.MaxWindow].
func (l *Limiter) Ban(ctx context.Context, subject string, length time.Duration) error {
	if length <= 0 || length > ratelimit.MaxWindow {
		return fmt.Errorf("%w: ban of %v is not from above 0 to %v", ratelimit.ErrInvalid, length, ratelimit.MaxWindow)
	}
	_, err := l.ask(ctx, question{op: opBan, subject: subject, arg: int64(length)})
	return err
}

// Unban implements [ratelimit.Banner].
func (l *Limiter) Unban(ctx context.Context, subject string) (bool, error) {
	r, err := l.ask(ctx, question{op: opUnban, subject: subject})
	if err != nil {
		return false, err
	}
	s, err := r.subject()
	if err != nil {
		return false, err
	}
	return s.banEnds(r.time) > 0, nil
}

// Bans implements [ratelimit.Banner]. It walks through the 1024 indexes of bans, and
// looks at the subjects in them, in steps that are small however many bans there
// are: a list of 250,000 takes some 500 round trips. It does not see all bans at one
// instant: a ban that starts or ends meanwhile may be in the list or not.
func (l *Limiter) Bans(ctx context.Context) ([]ratelimit.Ban, error) {
	type result struct {
		bans []ratelimit.Ban
		err  error
	}
	results := make(chan result, 1)
	go func() {
		bans, err := l.bans(ctx)
		results <- result{bans, err}
	}()
	select {
	case r := <-results:
		return r.bans, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A walk goes through the indexes of bans.
type walk struct {
	*Limiter
	scans []scan          // what is left
	seen  map[string]bool // names that were found
	bans  []ratelimit.Ban
}

// A scan is an index and how far it was read.
type scan struct {
	index  string
	cursor uint64
}

// A step reads some indexes, and from each of them about as many names as it is
// asked for. Redis gives a small index, of up to 128 names by default, as a whole.
const (
	scansOfStep = 64
	namesOfScan = 16
)

func (l *Limiter) bans(ctx context.Context) ([]ratelimit.Ban, error) {
	w := walk{Limiter: l, seen: map[string]bool{}}
	for p := range partitions {
		w.scans = append(w.scans, scan{index: l.keys.index(p)})
	}
	for len(w.scans) > 0 {
		names, err := w.step(ctx)
		if err != nil {
			return nil, fmt.Errorf("redislimit: %w: listing bans: %w", ratelimit.ErrUnavailable, err)
		}
		for names := range slices.Chunk(names, maxGroups) {
			if err := w.show(ctx, names); err != nil {
				return nil, err
			}
		}
	}
	return w.bans, nil
}

// step returns names from the next indexes that it has not returned before.
func (w *walk) step(ctx context.Context) (names []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	scans := w.scans[:min(len(w.scans), scansOfStep)]
	w.scans = w.scans[len(scans):]
	pipe := w.client.Pipeline()
	for _, s := range scans {
		pipe.ZScan(ctx, s.index, s.cursor, "", namesOfScan)
	}
	cmds, err := pipe.Exec(ctx)
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "WRONGTYPE") {
			return nil, foreign(scans[i].index)
		}
	}
	if err != nil {
		return nil, err
	}
	for i, cmd := range cmds {
		members, cursor := cmd.(*redis.ScanCmd).Val() // each name followed by its score
		for i := 0; i+1 < len(members); i += 2 {
			if !w.seen[members[i]] {
				w.seen[members[i]] = true
				names = append(names, members[i])
			}
		}
		if cursor != 0 {
			w.scans = append(w.scans, scan{scans[i].index, cursor})
		}
	}
	return names, nil
}

// show adds the bans in force of the subjects with the given names.
func (w *walk) show(ctx context.Context, names []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	groups, calls := make([]*group, len(names)), make([]call, len(names))
	for i, name := range names {
		calls[i].ready = make(chan struct{}, 1)
		groups[i] = newGroup(question{op: opShow, subject: name})
		groups[i].add(&calls[i])
	}
	w.send(groups)
	for i, g := range groups {
		<-calls[i].ready
		if g.err != nil {
			return g.err
		}
		r := reply{time: g.time, entry: g.entry}
		s, err := r.subject()
		if err != nil {
			return err
		}
		if ends := s.banEnds(g.time); ends > 0 {
			w.bans = append(w.bans, ratelimit.Ban{Subject: g.subject, Ends: time.Unix(ends, 0).UTC(), Level: s.level})
		}
	}
	return nil
}
