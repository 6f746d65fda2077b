//go:build !linux

package main

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// A poller cannot be made: the command runs only on Linux.
type poller struct{}

var errNotLinux = errors.New("requests are sent with epoll; run this on Linux")

func newPoller() (*poller, error)                                 { return nil, errNotLinux }
func (*poller) close()                                            {}
func (*poller) dial(context.Context, string, int) (socket, error) { return socket{}, errNotLinux }
func (*poller) wait(time.Duration) ([]event, error)               { return nil, errNotLinux }

type event struct{}

func (event) connection() int { return 0 }
func (event) writable() bool  { return false }
func (event) readable() bool  { return false }
func (event) ended() bool     { return false }

type socket struct{}

func (socket) read([]byte) (int, error)  { return 0, errNotLinux }
func (socket) write([]byte) (int, error) { return 0, errNotLinux }

// endWithParent does nothing: the command runs only on Linux.
func endWithParent(*exec.Cmd) {}
