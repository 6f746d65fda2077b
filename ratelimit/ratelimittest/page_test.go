package ratelimittest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The code on the page is a part of the tests, so that it compiles and passes. That of
// gRPC is a part of those in examples/grpc, a module of its own.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("service_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Error("docs/TESTING.md has no code")
	}
	for _, b := range blocks {
		if !strings.Contains(string(source), string(b[1])) && !strings.Contains(string(b[1]), "grpc.") {
			t.Errorf("docs/TESTING.md: service_test.go does not have\n%s", b[1])
		}
	}
}
