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

// volatile are header fields whose values change from one answer to the next.
var volatile = []string{"X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"}

// number is a number that may change, such as the ID of a new pet.
var number = regexp.MustCompile(`\d+`)

// checkStable returns an error unless a server still answers as it did before: with the same
// status and fields, and with the same body, except for numbers.
func checkStable(r request, before, now answer) error {
	a, b := before.Header.Clone(), now.Header.Clone()
	for _, name := range volatile {
		if len(a[name]) != len(b[name]) {
			return fmt.Errorf("%s %s: the answer had %d of the field %s, and now has %d", r.method, r.path, len(a[name]), name, len(b[name]))
		}
		delete(a, name)
		delete(b, name)
	}
	text := func(h http.Header, body []byte) []byte {
		var out bytes.Buffer
		h.Write(&out)
		out.Write(body)
		return number.ReplaceAll(out.Bytes(), []byte("0"))
	}
	if x, y := text(a, before.Body), text(b, now.Body); !bytes.Equal(x, y) {
		return fmt.Errorf("%s %s: the answer has changed while it was measured\n--- before\n%s\n--- now\n%s", r.method, r.path, begin(x), begin(y))
	}
	return nil
}

// begin returns the beginning of an answer, for a message.
func begin(text []byte) []byte { return text[:min(len(text), 1000)] }
