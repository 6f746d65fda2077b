package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A poller waits for sockets and for a time, for one thread. It is used instead of the
// network poller of Go, which wakes another thread and rounds times up to milliseconds.
type poller struct {
	epoll   int
	sockets []socket
	events  [connections]event
	timeout struct{ s, ns int64 } // as the kernel has it on every architecture
}

// newPoller returns a poller for the thread of its caller, which must be locked.
func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// Otherwise the kernel may add 50 microseconds to each wait.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("set the timer slack: %w", err)
	}
	return &poller{epoll: epoll}, nil
}

// close closes the sockets as well.
func (p *poller) close() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) //nolint:errcheck // the default is always allowed
	for _, s := range p.sockets {
		unix.Close(int(s))
	}
	unix.Close(p.epoll)
}

// dial opens a connection, whose events then have its number.
func (p *poller) dial(ctx context.Context, address string, number int) (socket, error) {
	c, err := dial(ctx, address)
	if err != nil {
		return 0, err
	}
	defer c.Close() // also takes it out of the network poller of Go
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var fd int
	var dupErr error
	if err := raw.Control(func(open uintptr) { fd, dupErr = unix.FcntlInt(open, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return 0, err
	}
	if dupErr != nil {
		return 0, fmt.Errorf("duplicate a connection: %w", dupErr)
	}
	p.sockets = append(p.sockets, socket(fd))
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(number)}
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return 0, fmt.Errorf("epoll: %w", err)
	}
	return socket(fd), nil
}

// wait waits for events, at most for a time. The events are valid until the next wait.
func (p *poller) wait(d time.Duration) ([]event, error) {
	p.timeout.s, p.timeout.ns = int64(d/time.Second), int64(d%time.Second)
	n, _, err := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&p.timeout)), 0, 0)
	switch err {
	case 0:
		return p.events[:n], nil
	case unix.EINTR:
		return nil, nil
	case unix.ENOSYS:
		return nil, errors.New("the kernel has no epoll_pwait2; run this on Linux 5.11 or newer")
	default:
		return nil, fmt.Errorf("epoll: %w", err)
	}
}

// An event says that something has changed for a connection: it comes once for each change.
type event unix.EpollEvent

func (e event) connection() int { return int(e.Fd) }
func (e event) writable() bool  { return e.Events&unix.EPOLLOUT != 0 }
func (e event) readable() bool  { return e.Events&^unix.EPOLLOUT != 0 }

// ended says that nothing more will come.
func (e event) ended() bool { return e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 }

// A socket is a connection whose methods do not wait.
type socket int

// read returns 0 if there is nothing to read yet, and io.EOF at the end.
func (s socket) read(b []byte) (int, error) {
	n, err := unix.Read(int(s), b)
	switch {
	case err == unix.EAGAIN:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read: %w", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// write returns how much there was room for.
func (s socket) write(b []byte) (int, error) {
	n, err := unix.Write(int(s), b)
	switch {
	case err == unix.EAGAIN:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("write: %w", err)
	}
	return n, nil
}

// endWithParent has the kernel kill a program when this process ends, even by SIGKILL.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
