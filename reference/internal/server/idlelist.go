package server

// An idleList holds the idle connections, the one that has been idle for longest in
// front. The links are in the connections, since these are added and removed with each
// request. The zero value is empty. It is not safe for concurrent use.
type idleList struct {
	front, back *limitedConn
	len         int
}

// idleLinks are the place of a connection in an idleList.
type idleLinks struct {
	prev, next *limitedConn
	listed     bool
}

// pushBack adds a connection that is not in the list.
func (l *idleList) pushBack(c *limitedConn) {
	c.idle = idleLinks{prev: l.back, listed: true}
	if l.back == nil {
		l.front = c
	} else {
		l.back.idle.next = c
	}
	l.back = c
	l.len++
}

// remove removes a connection, unless it is not in the list.
func (l *idleList) remove(c *limitedConn) {
	if !c.idle.listed {
		return
	}
	if prev := c.idle.prev; prev == nil {
		l.front = c.idle.next
	} else {
		prev.idle.next = c.idle.next
	}
	if next := c.idle.next; next == nil {
		l.back = c.idle.prev
	} else {
		next.idle.prev = c.idle.prev
	}
	c.idle = idleLinks{}
	l.len--
}
