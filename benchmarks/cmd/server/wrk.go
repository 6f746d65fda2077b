package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// connections is how many connections are kept open and used at the same time.
const connections = 64

// A rate is what wrk has measured.
type rate struct {
	perS float64
	cost []time.Duration // processor time of each process for a request
}

// measureRate has wrk send a request to an address of a server as fast as it is answered.
// It also measures the processor time of the server, and of processes that it uses.
func (b *bench) measureRate(server *process, address string, r request, duration time.Duration, used ...*process) (rate, error) {
	script := filepath.Join(b.dir, "request.lua")
	if err := os.WriteFile(script, []byte(r.script()), 0o600); err != nil {
		return rate{}, err
	}
	processes := append([]*process{server}, used...)
	before, err := processorTimes(processes)
	if err != nil {
		return rate{}, err
	}
	counted, err := runWrk(b.ctx, script, "http://"+address+r.path, duration)
	if err != nil {
		return rate{}, err
	}
	costs, err := processorTimes(processes)
	if err != nil {
		return rate{}, err
	}
	for i := range costs {
		costs[i] = (costs[i] - before[i]) / time.Duration(max(counted.Requests, 1))
	}
	wrong := counted.Status // answered with 400 or more
	if r.status >= 400 {
		wrong = counted.Requests - counted.Status
	}
	if wrong > 0 || counted.Failed > 0 || counted.Requests == 0 {
		return rate{}, fmt.Errorf("%s %s: of %d requests, %d were not answered with %d, and %d failed; %s",
			r.method, r.path, counted.Requests, wrong, r.status, counted.Failed, server.out)
	}
	return rate{float64(counted.Requests) / (float64(counted.Microseconds) / 1e6), costs}, nil
}

func processorTimes(processes []*process) (times []time.Duration, err error) {
	for _, p := range processes {
		t, err := p.processorTime()
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	return times, nil
}

// count is what the script of a request prints.
type count struct {
	Requests, Microseconds, Status, Failed int64
}

func runWrk(ctx context.Context, script, url string, duration time.Duration) (count, error) {
	seconds := max(int(duration/time.Second), 1) // wrk knows whole seconds only
	var out bytes.Buffer
	p, err := start(ctx, "wrk", "", nil, &out, "wrk", "-t", "1", "-c", strconv.Itoa(connections),
		"-d", strconv.Itoa(seconds)+"s", "-s", script, url)
	if err != nil {
		return count{}, err
	}
	<-p.ended
	if p.err != nil {
		return count{}, fmt.Errorf("%w\n%s", p.failed(p.err), &out)
	}
	var c count
	for line := range bytes.Lines(out.Bytes()) {
		if bytes.HasPrefix(line, []byte("{")) {
			return c, json.Unmarshal(line, &c)
		}
	}
	return c, fmt.Errorf("wrk did not print what it counted:\n%s", &out)
}
