//go:build unix

package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// startTimeout is how long a server may take to start, or a cluster to form.
const startTimeout = time.Minute

// Do sends one command, over a connection of its own, and returns the strings and numbers
// of the reply, those of nested arrays as well. A reply that is an error is returned as one.
func (s *Server) Do(args ...string) ([]string, error) {
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	command := fmt.Sprintf("*%d\r\n", len(args))
	for _, arg := range args {
		command += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, command); err != nil {
		return nil, err
	}
	reply, err := readReply(bufio.NewReader(conn))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.Addr, strings.Join(args, " "), err)
	}
	return reply, nil
}

// must sends a command, and fails the test if the reply is an error.
func (s *Server) must(args ...string) []string {
	s.t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply
}

// await sends a command until its reply has all of some texts.
func (s *Server) await(command string, texts ...string) {
	s.t.Helper()
	if err := s.eventually(command, texts...); err != nil {
		s.t.Fatal(err)
	}
}

// eventually is await, and returns why the reply is not there in time.
func (s *Server) eventually(command string, texts ...string) error {
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(5 * time.Millisecond) {
		reply, err := s.Do(strings.Fields(command)...)
		for _, text := range texts {
			if err == nil && !strings.Contains(reply[0], text) {
				err = fmt.Errorf("%s: the reply to %s has no %s:\n%s", s.Addr, command, text, reply[0])
			}
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// readReply reads a reply of version 2 of Redis's protocol.
func readReply(r *bufio.Reader) (values []string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, text := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+', ':':
		return []string{text}, nil
	case '-':
		return nil, errors.New(text)
	}
	size, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return nil, err
	case size < 0: // nil
		return []string{""}, nil
	case kind == '$':
		bulk := make([]byte, size+len("\r\n"))
		_, err = io.ReadFull(r, bulk)
		return []string{string(bulk[:size])}, err
	}
	for range size {
		more, err := readReply(r)
		if err != nil {
			return nil, err
		}
		values = append(values, more...)
	}
	return values, nil
}
