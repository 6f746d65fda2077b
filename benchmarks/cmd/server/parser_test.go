package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

var must = testcheck.NoError

func TestParserFindsTheEndOfAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, method, answer string
		status               int
	}{
		{"a body", "GET", "HTTP/1.1 200 OK\r\nVary: Accept\r\nContent-Length: 3\r\n\r\nabc", 200},
		{"an empty body", "GET", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 401},
		{"304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", 304},
		{"204", "DELETE", "HTTP/1.1 204 No Content\r\n\r\n", 204},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			two := []byte(tt.answer + tt.answer)
			for size := 1; size <= len(two); size++ {
				p := parser{method: tt.method}
				var ends []int
				for at := 0; at < len(two); {
					used, complete, err := p.parse(two[at:min(at+size, len(two))])
					must(t, err)
					at += used
					if complete {
						ends = append(ends, at)
						if p.status != tt.status {
							t.Errorf("in pieces of %d bytes: status %d, want %d", size, p.status, tt.status)
						}
					}
				}
				if len(ends) != 2 || ends[0] != len(tt.answer) || ends[1] != len(two) {
					t.Errorf("in pieces of %d bytes: two answers of %d bytes end at %v", size, len(tt.answer), ends)
				}
			}
		})
	}
}

func TestAnErrorHasWhatWasReceived(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{"", "the server has closed the connection before an answer"},
		{"HTTP/1.1 200", "the server has closed the connection after a part of an answer:\nHTTP/1.1 200"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "the server has closed the connection after 2 of 3 bytes of the body of an answer with status 200"},
		{"HTTP\r\n\r\n", "the answer does not begin with HTTP/1.1 and a status:\nHTTP\r\n\r\n"},
		{"SSH-2.0-server of another kind\r\n\r\n", "the answer does not begin with HTTP/1.1 and a status:\nSSH-2.0"},
		{"HTTP/1.1 OK 200 200\r\n\r\n", "the answer does not begin with HTTP/1.1 and a status:\nHTTP/1.1 OK"},
		{"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "the answer has a Content-Length of \"x\":\nHTTP/1.1 200 OK\r\n"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "the answer has no Content-Length:\nHTTP/1.1 200 OK\r\nTransfer"},
		{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", longestHead), "the head of the answer has more than 65536 bytes:\nHTTP/1.1 200 OK\r\nX: x"},
	} {
		for name, in := range map[string]io.Reader{"whole": strings.NewReader(tt.answer), "in bytes": iotest.OneByteReader(strings.NewReader(tt.answer))} {
			if _, err := skipAnswer(in, "GET", make([]byte, 4096)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%q, %s: %v, want %q", begin([]byte(tt.answer)), name, err, tt.want)
			}
		}
	}
}

func TestSkipAnswer(t *testing.T) {
	in := iotest.DataErrReader(strings.NewReader("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 3\r\n\r\nabc"))
	if status, err := skipAnswer(in, "GET", make([]byte, 20)); err != nil || status != 429 {
		t.Errorf("skipAnswer = %d, %v, want 429", status, err)
	}
}
