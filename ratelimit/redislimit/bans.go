package redislimit

import (
	"context"
	"fmt"
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

// Lift implements [ratelimit.Banner].
func (l *Limiter) Lift(ctx context.Context, subject string) (bool, error) {
	r, err := l.ask(ctx, question{op: opLift, subject: subject})
	if err != nil {
		return false, err
	}
	s, err := r.subject()
	if err != nil {
		return false, err
	}
	return s.banEnds(r.time) > 0, nil
}

// Bans implements [ratelimit.Banner]. It reads the 1024 indexes of bans in one
// round trip, then the subjects in them. It does not see all of them at one
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

func (l *Limiter) bans(ctx context.Context) ([]ratelimit.Ban, error) {
	names, err := l.candidates(ctx)
	if err != nil {
		return nil, fmt.Errorf("redislimit: %w: listing bans: %w", ratelimit.ErrUnavailable, err)
	}
	var bans []ratelimit.Ban
	for len(names) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		groups := make([]*group, 0, maxGroups)
		for _, name := range names[:min(len(names), maxGroups)] {
			g := newGroup(question{op: opShow, subject: name})
			g.add(&call{ready: make(chan struct{}, 1)})
			groups = append(groups, g)
		}
		names = names[len(groups):]
		calls := make([]*call, len(groups))
		for i, g := range groups {
			calls[i] = g.first
		}
		l.send(groups)
		for i, g := range groups {
			<-calls[i].ready
			if g.err != nil {
				return nil, g.err
			}
			r := reply{time: g.time, entry: g.entry}
			s, err := r.subject()
			if err != nil {
				return nil, err
			}
			if ends := s.banEnds(g.time); ends > 0 {
				bans = append(bans, ratelimit.Ban{Subject: g.subject, Ends: time.Unix(ends, 0).UTC(), Level: s.level})
			}
		}
	}
	return bans, nil
}

// candidates returns the names in the indexes, each once.
func (l *Limiter) candidates(ctx context.Context) (names []string, err error) {
	const count = 1024 // names that a server looks at in one step
	cursors := make(map[string]uint64, partitions)
	for p := range partitions {
		cursors[l.keys.index(p)] = 0
	}
	seen := map[string]bool{}
	for len(cursors) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pipe := l.client.Pipeline()
		scans := make(map[string]*redis.ScanCmd, len(cursors))
		for index, cursor := range cursors {
			scans[index] = pipe.ZScan(ctx, index, cursor, "", count)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			for index, scan := range scans {
				if redis.HasErrorPrefix(scan.Err(), "WRONGTYPE") {
					return nil, foreign(index)
				}
			}
			return nil, err
		}
		for index, scan := range scans {
			members, cursor := scan.Val() // each name followed by its score
			for i := 0; i+1 < len(members); i += 2 {
				if !seen[members[i]] {
					seen[members[i]] = true
					names = append(names, members[i])
				}
			}
			cursors[index] = cursor
			if cursor == 0 {
				delete(cursors, index)
			}
		}
	}
	return names, nil
}
