package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
)

// An answer is what a bare server answers every request with.
type answer struct {
	Status int
	Header http.Header // without Date, which net/http sets
	Body   []byte
}

// bareCommand is the argument with which the command runs as bare servers.
const bareCommand = "bare"

// serveBare reads a list of answers from standard input, and serves each on a port of its
// own, whose address it prints. It ends when standard input ends, which it does with the
// process that started it.
//
// A bare server is an http.Server without timeouts, whose handler writes an answer that
// was made before. Nothing that uses net/http can do less for the same bytes.
func serveBare() error {
	in := json.NewDecoder(os.Stdin)
	var answers []answer
	if err := in.Decode(&answers); err != nil {
		return err
	}
	var addresses []string
	for _, a := range answers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addresses = append(addresses, l.Addr().String())
		go http.Serve(l, a) //nolint:errcheck // it serves until the process ends
	}
	if err := json.NewEncoder(os.Stdout).Encode(addresses); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the client would notice
	}
	h := w.Header()
	for name, values := range a.Header {
		h[name] = values
	}
	w.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		w.Write(a.Body)
	}
}

// bareServers are running bare servers, one for each answer.
type bareServers struct {
	*process
	addresses []string
}

// startBare starts this program as bare servers, which end when it ends or b does.
func (b *bench) startBare(answers []answer) (*bareServers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, toIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b.closers = append(b.closers, toIn)
	fromOut, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer fromOut.Close()
	p, err := b.start("bare server", "", in, out, self, bareCommand)
	out.Close()
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(toIn).Encode(answers); err != nil {
		return nil, err
	}
	s := &bareServers{process: p}
	if err := json.NewDecoder(fromOut).Decode(&s.addresses); err != nil {
		p.kill()
		return nil, errors.Join(err, p.failed(p.err))
	}
	return s, nil
}
