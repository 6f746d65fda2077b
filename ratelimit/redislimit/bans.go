package redislimit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Ban implements [engine.Banner]. The length is from above zero to
// 366 days.
func (l *Limiter) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	why, err := engine.CheckBan(subject, length, reason)
	if err == nil {
		_, _, err = l.do(ctx, operation{code: opBan, subject: subject, length: length, reason: why})
	}
	return err
}

// Unban implements [engine.Banner].
func (l *Limiter) Unban(ctx context.Context, subject string) (bool, error) {
	a, _, err := l.do(ctx, operation{code: opUnban, subject: subject})
	if err != nil {
		return false, err
	}
	v, err := a.value()
	if err != nil {
		return false, err
	}
	return v.banEnds(a.nanos) > 0, nil
}

// Bans implements [engine.Banner]. It reads the 1024 indexes of bans, and then the
// subjects in them, in small steps: a list of 250,000 bans takes about 500 round
// trips. It does not see all bans at one instant: a ban that starts or ends meanwhile
// may be in the list or not.
func (l *Limiter) Bans(ctx context.Context) ([]engine.Ban, error) {
	var bans []engine.Ban
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		bans, err = l.bans(ctx)
	}()
	select {
	case <-done:
		return bans, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A walk goes through the indexes of bans.
type walk struct {
	*sender
	scans []scan          // what is left to read
	seen  map[string]bool // the subjects that were found
	bans  []engine.Ban
}

// A scan is an index and how far it was read.
type scan struct {
	index  string
	cursor uint64
}

// A step reads some indexes, and asks each of them for some names. Redis returns a
// small index, of up to 128 names by default, as a whole.
const (
	scansOfStep = 64
	namesOfScan = 16
)

func (l *Limiter) bans(ctx context.Context) ([]engine.Ban, error) {
	w := walk{sender: l.sender, seen: map[string]bool{}}
	for p := range partitions {
		w.scans = append(w.scans, scan{index: w.keys.index(p)})
	}
	for len(w.scans) > 0 {
		names, err := w.step(ctx)
		if err != nil {
			return nil, fmt.Errorf("redislimit: %w: listing bans: %w", ratelimit.ErrUnavailable, err)
		}
		for names := range slices.Chunk(names, maxGroups) {
			if err := w.show(names); err != nil {
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
			return nil, w.unknownValue(scans[i].index)
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
func (w *walk) show(names []string) error {
	b, calls := new(batch), make([]*call, len(names))
	for i, name := range names {
		calls[i] = newCall()
		b.add(operation{code: opShow, subject: name}, calls[i])
	}
	b.seal()
	_ = w.send(b.groups) // the groups have the errors
	for i, g := range b.groups {
		<-calls[i].ready
		if g.err != nil {
			return g.err
		}
		v, err := g.value()
		if err != nil {
			return err
		}
		if ends := v.banEnds(g.nanos); ends > 0 {
			w.bans = append(w.bans, engine.Ban{Subject: g.subject, Ends: time.Unix(ends, 0).UTC(), Level: v.level, Reason: *v.reason})
		}
	}
	return nil
}
