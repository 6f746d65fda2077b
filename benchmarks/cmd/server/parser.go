package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A parser finds the ends of answers in what a server sends. It allocates nothing unless
// the head of an answer comes in pieces.
type parser struct {
	method string // of the requests
	head   []byte // of an answer, as long as its end has not come
	status int    // of the last answer whose head is complete; zero while one is not
	length int    // of its body
	rest   int    // of its body, which has not come
}

const longestHead = 64 << 10

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// parse takes the next piece of an answer. It returns how many of its bytes belong to the
// answer, and whether that is complete; the next piece then is one of the next answer.
func (p *parser) parse(piece []byte) (used int, complete bool, err error) {
	if p.rest == 0 {
		head, already := piece, len(p.head)
		p.status = 0
		if already > 0 {
			p.head = append(p.head, piece...)
			head = p.head
		}
		end := bytes.Index(head, headEnd)
		if end < 0 {
			if already == 0 {
				p.head = append(p.head, piece...)
			}
			if len(p.head) > longestHead {
				return 0, false, fmt.Errorf("the head of the answer has more than %d bytes:\n%s", longestHead, begin(p.head))
			}
			return len(piece), false, nil
		}
		end += len(headEnd)
		if err := p.parseHead(head[:end]); err != nil {
			return 0, false, fmt.Errorf("%w:\n%s", err, begin(head))
		}
		p.head = p.head[:0]
		used = end - already
	}
	n := min(p.rest, len(piece)-used)
	p.rest -= n
	return used + n, p.rest == 0, nil
}

func (p *parser) parseHead(head []byte) (err error) {
	if len(head) < len("HTTP/1.1 200\r\n") || !bytes.HasPrefix(head, []byte("HTTP/1.")) {
		return errors.New("the answer does not begin with HTTP/1.1 and a status")
	}
	if p.status, err = strconv.Atoi(string(head[9:12])); err != nil {
		return errors.New("the answer does not begin with HTTP/1.1 and a status")
	}
	p.length = 0
	if p.method == "HEAD" || p.status == 204 || p.status == 304 {
		return nil
	}
	at := bytes.Index(head, contentLength)
	if at < 0 {
		return errors.New("the answer has no Content-Length")
	}
	digits := head[at+len(contentLength):]
	digits = digits[:bytes.IndexByte(digits, '\r')]
	length, err := strconv.ParseUint(string(digits), 10, 31)
	p.length = int(length)
	p.rest = p.length
	if err != nil {
		return fmt.Errorf("the answer has a Content-Length of %q", digits)
	}
	return nil
}

// interrupted adds to an error what had come of an answer.
func (p *parser) interrupted(err error) error {
	if errors.Is(err, io.EOF) {
		err = errors.New("the server has closed the connection")
	}
	switch {
	case p.rest > 0:
		return fmt.Errorf("%w after %d of %d bytes of the body of an answer with status %d", err, p.length-p.rest, p.length, p.status)
	case len(p.head) > 0:
		return fmt.Errorf("%w after a part of an answer:\n%s", err, begin(p.head))
	default:
		return fmt.Errorf("%w before an answer", err)
	}
}

// skipAnswer reads the answer to a request, and returns its status. The buffer is for what
// it reads meanwhile.
func skipAnswer(in io.Reader, method string, buffer []byte) (status int, err error) {
	p := parser{method: method}
	for {
		n, err := in.Read(buffer)
		if n > 0 {
			if _, complete, err := p.parse(buffer[:n]); complete || err != nil {
				return p.status, err
			}
		}
		if err != nil {
			return 0, p.interrupted(err)
		}
	}
}
