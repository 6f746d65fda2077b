package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"time"
)

// exchange sends a request on a connection of its own, and returns the answer, parsed and
// as it was sent.
func exchange(address string, r request) (answer, []byte, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return answer{}, nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return answer{}, nil, err
	}
	if _, err := c.Write(r.bytes(address)); err != nil {
		return answer{}, nil, err
	}
	var raw bytes.Buffer
	response, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, &raw)), &http.Request{Method: r.method})
	if err != nil {
		return answer{}, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, nil, err
	}
	if response.StatusCode != r.status {
		return answer{}, nil, fmt.Errorf("%s %s was answered with %d, want %d: %s", r.method, r.path, response.StatusCode, r.status, body)
	}
	response.Header.Del("Date")
	return answer{response.StatusCode, response.Header, body}, raw.Bytes(), nil
}

var date = regexp.MustCompile(`(?m)^Date: .*$`)

// checkSame returns an error unless two servers answer with the same bytes, but for the
// date.
func checkSame(r request, petstore, bare []byte) error {
	want, got := date.ReplaceAll(petstore, nil), date.ReplaceAll(bare, nil)
	if !bytes.Equal(want, got) {
		return fmt.Errorf("%s %s: the bare server does not answer with the bytes of petstore\n--- petstore\n%s\n--- bare\n%s",
			r.method, r.path, begin(want), begin(got))
	}
	return nil
}

// begin returns the beginning of an answer, for a message.
func begin(text []byte) []byte { return text[:min(len(text), 1000)] }
