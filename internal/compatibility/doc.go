// Package compatibility tests that the middlewares of this module do not disturb handlers:
// a handler that streams, hijacks, pushes, aborts or serves ranges does so inside each
// of them as it does without, over HTTP/1.1 and HTTP/2.
//
// Each test serves one handler twice, bare and inside a middleware, sends the same
// requests to both, and compares what the handler and the client noted. A new
// middleware is a row in middlewares_test.go, and a new behaviour a value in one of the
// behaviours_*_test.go files.
package compatibility
