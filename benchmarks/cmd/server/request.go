package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A request is one that is sent many times.
type request struct {
	method string // "": GET
	path   string
	fields []field
	body   string
	status int // that it must be answered with
}

// A field is a header field.
type field struct{ name, value string }

// get returns a GET request with an API key, unless that is "".
func get(path, key string, fields ...field) request {
	if key != "" {
		fields = append([]field{bearer(key)}, fields...)
	}
	return request{method: "GET", path: path, fields: fields, status: 200}
}

func bearer(key string) field { return field{"Authorization", "Bearer " + key} }

// post returns a request that creates a pet.
func post(key string) request {
	return request{method: "POST", path: "/v1/pets", status: 201,
		fields: []field{bearer(key), {"Content-Type", "application/json"}}, body: `{"name":"Rex","categoryId":1}`}
}

// with returns the request with another field.
func (r request) with(name, value string) request {
	r.fields = append(slices.Clip(r.fields), field{name, value})
	return r
}

// answered returns the request that is answered with another status.
func (r request) answered(status int) request {
	r.status = status
	return r
}

// bytes returns the request as HTTP/1.1 to a host.
func (r request) bytes(host string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.method, r.path, host)
	for _, f := range r.fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, f.value)
	}
	if r.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	b.WriteString("\r\n" + r.body)
	return b.Bytes()
}

// script returns the request as a script for wrk, which in the end prints what it counted
// as an object in JSON. A script without functions for requests and responses costs
// nothing while wrk runs.
func (r request) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wrk.method = %q\n", r.method)
	for _, f := range r.fields {
		fmt.Fprintf(&b, "wrk.headers[%q] = %q\n", f.name, f.value)
	}
	if r.body != "" {
		fmt.Fprintf(&b, "wrk.body = %q\n", r.body)
	}
	b.WriteString(`done = function(sum, latency, requests)
  local e = sum.errors
  io.write(string.format('{"requests":%d,"microseconds":%d,"status":%d,"failed":%d}\n',
    sum.requests, sum.duration, e.status, e.connect + e.read + e.write + e.timeout))
end
`)
	return b.String()
}
