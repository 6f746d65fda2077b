package httpserver

import (
	"container/list"
	"math/rand/v2"
	"slices"
	"testing"
)

// The list does what one of package container/list does.
func TestIdleList(t *testing.T) {
	const connections = 8
	var l idleList
	model := list.New()
	elements := map[*limitedConn]*list.Element{}
	conns := make([]*limitedConn, connections)
	for i := range conns {
		conns[i] = new(limitedConn)
	}
	for step := range 10_000 {
		c := conns[rand.IntN(connections)]
		if e := elements[c]; e != nil || rand.IntN(3) == 0 {
			l.remove(c)
			if e != nil {
				model.Remove(e)
				delete(elements, c)
			}
		} else {
			l.pushBack(c)
			elements[c] = model.PushBack(c)
		}
		var want, forward, backward []*limitedConn
		for e := model.Front(); e != nil; e = e.Next() {
			want = append(want, e.Value.(*limitedConn))
		}
		for c := l.front; c != nil; c = c.idle.next {
			forward = append(forward, c)
		}
		for c := l.back; c != nil; c = c.idle.prev {
			backward = append(backward, c)
		}
		slices.Reverse(backward)
		if !slices.Equal(forward, want) || !slices.Equal(backward, want) || l.len != len(want) {
			t.Fatalf("after %d steps the list has %d connections, %d forward and %d backward, want %d in the order of the model",
				step+1, l.len, len(forward), len(backward), len(want))
		}
	}
}
