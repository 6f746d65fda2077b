package redislimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A sender has the script answer groups, in commands of the client.
type sender struct {
	client   redis.UniversalClient
	cluster  *redis.ClusterClient // the client, if it is one of a cluster
	keys     *keys
	logger   *slog.Logger
	policies sync.Map                                          // of eviction, by server
	observe  func(requests int, took time.Duration, err error) // nil: none

	aheadNanos atomic.Int64 // how far the server's clock is ahead of this one; 0 unless calendar windows showed it
	oneSlot    atomic.Bool  // all subjects of a command must be in one slot
	reloaded   lastTime     // when the masters were reloaded
	asked      lastTime     // when the servers were asked for their policies
	reported   lastTime     // when it was logged that some subjects fail
}

func newSender(client redis.UniversalClient, k *keys, opts Options) *sender {
	s := &sender{client: client, keys: k, logger: opts.Logger, observe: opts.Observe}
	s.cluster, _ = client.(*redis.ClusterClient)
	_, oneServer := client.(*redis.Client)
	s.oneSlot.Store(!oneServer)
	return s
}

func (s *sender) newBatcher() *batcher { return &batcher{maxInFlight: maxInFlight, send: s.send} }

// send has the script answer the groups. Groups that wait for a slot of a cluster are
// answered later. An error says that the server cannot decide.
func (s *sender) send(groups []*group) error {
	return s.exchange(s.pack(groups))
}

// exchange sends commands, and what follows from the replies, until all of their groups are
// answered, or wait for a slot that moves. An error belongs to the last commands, if their
// server cannot decide.
//
// A goroutine of its own sends most batches. send, exchange and roundTrip are small,
// so that its stack grows once and not twice on the way through the client.
func (s *sender) exchange(cmds []*command) (away error) {
	for attempt := 1; len(cmds) > 0; attempt++ {
		sent := time.Now()
		s.roundTrip(cmds)
		away = allAway(cmds)
		s.observeAll(cmds, sent)
		cmds = s.receiveAll(cmds, attempt)
	}
	return away
}

// observeAll reports commands that were sent at the given time.
func (s *sender) observeAll(cmds []*command, sent time.Time) {
	if s.observe == nil {
		return
	}
	took := time.Since(sent)
	for _, cmd := range cmds {
		requests := 0
		for _, g := range cmd.groups {
			requests += int(g.requests)
		}
		s.observe(requests, took, cmd.Err())
	}
}

// allAway returns the error of commands whose server cannot decide, and nil if one was
// answered, or failed otherwise.
func allAway(cmds []*command) (err error) {
	for _, cmd := range cmds {
		if err = cmd.Err(); !away(err) {
			return nil
		}
	}
	return err
}

// away reports whether an error says that the server cannot decide, while other masters
// may: it does not answer, cannot be reached, or has just been started again.
func away(err error) bool {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		return redis.HasErrorPrefix(reply, "CLUSTERDOWN") || redis.HasErrorPrefix(reply, "LOADING")
	}
	return err != nil
}

// roundTrip sends commands together.
func (s *sender) roundTrip(cmds []*command) {
	ctx := context.Background() // no caller may end the commands of the others
	now := time.Now().UnixNano() + s.aheadNanos.Load()
	for _, cmd := range cmds {
		cmd.StringCmd = redis.NewStringCmd(ctx, cmd.args(s.keys, now)...)
	}
	if len(cmds) == 1 {
		_ = s.client.Process(ctx, cmds[0]) // the command has the error
		return
	}
	pipe := s.client.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx)
}

// receiveAll answers the groups of commands that were sent. It returns what is to be sent now.
func (s *sender) receiveAll(cmds []*command, attempt int) (again []*command) {
	for _, cmd := range cmds {
		again = append(again, s.receive(cmd, attempt)...)
	}
	return again
}

// errClocks says that the script was not sent the calendar windows that the server's
// time lies in.
var errClocks = errors.New("the clock of the server has changed by days between two calls")

// attempts is how often groups are sent at most, apart from pauses: the reasons to
// send them again can come together.
const attempts = 6

// receive answers the groups of a command that was sent for the attempt-th time. It returns
// what is to be sent now: commands of which the server said that nothing was done, and refunds.
func (s *sender) receive(cmd *command, attempt int) (again []*command) {
	err := s.readReply(cmd)
	first, single := cmd.groups[0], len(cmd.groups) == 1
	switch {
	case err == nil:
		return s.deliver(cmd)
	// Attempts do not bound these three: the second key is left out once, and waiting has a limit.
	case single && s.slotMoves(err) && first.code == opTake && first.index == indexGiven:
		first.index = indexUnavailable // so that the take starts no ban
		return []*command{{groups: cmd.groups}}
	case single && s.slotMoves(err) && first.code == opPeek && !first.leavesHolds:
		first.leavesHolds = true
		return []*command{{groups: cmd.groups}}
	case single && s.slotMoves(err): // the command needs keys of both masters
		go s.awaitSlot(first, err)
		return nil
	case attempt >= attempts:
	case errors.Is(err, errClocks): // the server's clock is known now
		return []*command{{groups: cmd.groups}}
	case redis.HasErrorPrefix(err, "NOSCRIPT"): // the server does not know the script by its digest
		return []*command{{groups: cmd.groups, eval: true}}
	case redis.HasErrorPrefix(err, "CROSSSLOT") && !single && first.code != opTakeAll: // it is in cluster mode
		s.oneSlot.Store(true)
		return s.pack(cmd.groups)
	case s.slotMoves(err): // which does not stop commands about one subject
		return cmd.split()
	}
	cmd.fail(s.failure(cmd, err))
	return nil
}

// readReply reads the reply to a command into its groups.
func (s *sender) readReply(cmd *command) error {
	if err := cmd.Err(); err != nil {
		return err
	}
	if s.asked.due(logInterval) {
		go s.warnOfEviction()
	}
	err := cmd.read(cmd.Val())
	if errors.Is(err, errClocks) {
		s.aheadNanos.Store(cmd.groups[0].nanos - time.Now().UnixNano())
	}
	return err
}

// failure returns the error of a command that is not sent again. It notes what the error says
// of the servers.
func (s *sender) failure(cmd *command, err error) error {
	first := cmd.groups[0]
	switch {
	case first.code == opTakeAll && redis.HasErrorPrefix(err, "CROSSSLOT"):
		s.oneSlot.Store(true)
		return errSeveralSlots
	case redis.HasErrorPrefix(err, "WRONGTYPE"): // of a subject's key the script says so itself
		if first.holder != nil || first.change != nil {
			return s.unknownValue(s.keys.holds(first.partition, first.subject))
		}
		return s.unknownValue(s.keys.index(first.partition))
	case strings.Contains(err.Error(), "syntax error"): // before Redis 6.2, SET does not know EXAT
		return fmt.Errorf("%w: the server is too old; use Redis 7.0 or newer, or Valkey", err)
	}
	if s.cluster != nil && s.reloaded.due(mastersInterval) {
		// The client would ask for the masters by itself once a minute, and when a
		// server redirects it, which a dead server does not.
		s.cluster.ReloadState(context.Background())
	}
	return err
}

// deliver ends the groups that are answered. It returns what is to be sent now: takes
// that need the index, once more, and refunds of requests that were granted after the
// deadlines of their callers, which had an error by then and did not admit them.
func (s *sender) deliver(cmd *command) (again []*command) {
	for _, g := range cmd.groups {
		if g.letter == needsIndex && g.index == indexNotNeeded {
			g.index = indexGiven
			again = append(again, &command{groups: []*group{g}})
			continue
		}
		switch g.letter {
		case unknown:
			g.err = unavailable(s.unknownValue(s.keys.subject(g.partition, g.subject)))
		case wrongIndex:
			g.err = unavailable(s.unknownValue(s.keys.index(g.partition)))
		}
		if late := g.finish(); late > 0 {
			again = append(again, g.refunds(late)...)
		}
	}
	return again
}

// refunds returns commands that give back what so many requests were charged.
func (g *group) refunds(requests int32) (cmds []*command) {
	charges, answers := []ratelimit.Charge{{Subject: g.subject, Plan: g.plan, Cost: g.cost}}, []answer{g.answer}
	if g.code == opTakeAll {
		charges, answers = g.takes.charges, g.takes.answers
	}
	if g.lease != nil {
		charges[0].Cost = g.lease.own + g.lease.share
	}
	for i := range charges {
		if op, err := answers[i].refund(&charges[i], requests); err == nil && charges[i].Cost > 0 {
			cmds = append(cmds, &command{groups: []*group{newGroup(op)}})
		}
	}
	return cmds
}

// fail ends the groups with an error.
func (cmd *command) fail(err error) {
	for _, g := range cmd.groups {
		g.fail(unavailable(err))
	}
}

// unavailable returns err as the engine's.
func unavailable(err error) error {
	return fmt.Errorf("redislimit: %w: %w", ratelimit.ErrUnavailable, err)
}
