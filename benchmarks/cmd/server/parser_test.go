package main

import (
	"testing"

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
