// Package wire tests what the middlewares of this module send, byte for byte, and writes
// docs/WIRE.md from it. For each kind of answer a server is started, with a clock that
// stands still, and one request is sent to it over HTTP/1.1. The response must be that in
// testdata, and the page must show it:
//
//	go test ./internal/wire -update # writes testdata/*.http and docs/WIRE.md
//
// A new kind of answer is a value in one of the answers_*_test.go files.
package wire
