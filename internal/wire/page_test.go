package wire

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// A part is a section of the page.
type part struct {
	title   string
	text    string
	answers []answer
}

// parts are the sections of the page, in order.
var parts = []part{limits, quotas, forms, inProgress, authentication, requests, deprecated}

// pageHead begins docs/WIRE.md. It has a place for plainRequest, and names the codes that no answer has.
const pageHead = `# The wire

What the middlewares send, for authors of clients and proxies. ` + "`go test ./internal/wire -update`" + ` receives each response over HTTP/1.1 and writes this page. [internal/wire/testdata](../internal/wire/testdata) has each response byte for byte; this page shows one of each kind, and leaves out Date, Content-Length, and what every error has: Cache-Control: no-store, X-Content-Type-Options: nosniff, Vary: Accept, and Content-Type: application/json where nothing else is shown.

The time is always 2026-03-01 12:00:43 UTC or a little later. Where no request is shown, it is
%s
The body of an error is one line that ends in LF.

What varies, and what to rely on:

- **Names of fields** have any case: ` + "`net/http` writes `X-Ratelimit-Limit`" + `, and HTTP/2 has only lower case. The order of fields has no meaning.
- **Texts** (` + "`message`, `title` and `detail`" + `) are for people. Programs read the status, the ` + "`code`" + ` and the header fields.
- **Date, X-RateLimit-Reset and Retry-After** depend on the time. Reset is in Unix seconds, Retry-After in seconds, rounded up. A client that was limited or banned, and waits that long, is admitted unless something else uses the quota meanwhile.
- **New codes and fields** can appear. Treat an unknown code as its status says, and ignore unknown fields.
- **Drafts** may still change: RateLimit (` + "`r` and `t` may become `a` and `w`" + `), RateLimit-Policy, the problem types of limits, and Idempotency-Key.
- **Further fields**, such as ` + "`X-Request-Id`" + ` and the fields of ` + "`middleware.SecurityHeaders`" + `, come from handlers, proxies and other middlewares.

Codes that are not on this page: ` + "`invalid_body`" + ` (400) and ` + "`unsupported_media_type`" + ` (415), also of ` + "`middleware/jsonbody`" + `, ` + "`gateway_timeout`" + ` (504, of RPCs that ended before they were counted), and from the service itself ` + "`invalid_parameter`" + ` (400) and ` + "`precondition_failed`" + ` (412).
`

// page returns docs/WIRE.md with the responses that were received, by the names of their
// answers.
func page(received map[string]string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, block(plainRequest))
	for _, p := range parts {
		fmt.Fprintf(&b, "\n## %s\n", p.title)
		if p.text != "" {
			fmt.Fprintf(&b, "\n%s\n", p.text)
		}
		for _, a := range p.answers {
			if !slices.Contains(whole, a.name) {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s\n", a.title, a.text)
			if a.request != "" {
				b.WriteString(block(a.request))
			}
			b.WriteString(block(shown(received[a.name])))
		}
		b.WriteString("\n")
		for _, a := range p.answers {
			if !slices.Contains(whole, a.name) {
				fmt.Fprintf(&b, "- **[%s](../internal/wire/testdata/%s.http)**, %s. %s\n", a.title, a.name, status(received[a.name]), a.text)
			}
		}
	}
	return []byte(strings.ReplaceAll(b.String(), "\n\n\n", "\n\n"))
}

// whole are the answers that the page shows as they were received. It describes the others.
var whole = []string{
	"allowed", "limited", "banned_api_key", "draft_limited", "problem_limited", "bearer_invalid", "deprecated",
}

// status returns the status and the code of a response.
func status(response string) string {
	_, status, _ := strings.Cut(response, " ")
	status = status[:3]
	if code := codeInBody.FindStringSubmatch(response); code != nil {
		status += " `" + code[1] + "`"
	}
	return status
}

// common are the lines that the page leaves out.
var common = regexp.MustCompile(`(?m)^(Date: .*|Content-Length: .*|Cache-Control: no-store|X-Content-Type-Options: nosniff|Vary: Accept|Content-Type: application/json)\r\n`)

// shown returns what the page shows of a response.
func shown(response string) string { return common.ReplaceAllString(response, "") }

// block returns a message as a block of code.
func block(message string) string {
	message = strings.ReplaceAll(message, "\r\n", "\n")
	return "\n```http\n" + strings.TrimRight(message, "\n") + "\n```\n"
}

var (
	codeInBody = regexp.MustCompile(`"code":"([a-z_]+)"`)
	codeListed = regexp.MustCompile(`(?m)^//\t([a-z_]+) +[45]\d\d `)
)

// checkCodes checks that each code of package apierror is in an answer, or named at the head of the page.
func checkCodes(t *testing.T, received map[string]string) {
	source := testcheck.Must(os.ReadFile("../../apierror/error.go"))
	shown := make(map[string]bool)
	for _, response := range received {
		if found := codeInBody.FindStringSubmatch(response); found != nil {
			shown[found[1]] = true
		}
	}
	listed := codeListed.FindAllStringSubmatch(string(source), -1)
	if len(listed) == 0 {
		t.Fatal("no code was found in the source of package apierror")
	}
	for _, code := range listed {
		if shown[code[1]] == strings.Contains(pageHead, "`"+code[1]+"`") {
			t.Errorf("the code %s must either be in an answer (it is: %t) or in pageHead", code[1], shown[code[1]])
		}
	}
}
