package api_test

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/contract"
)

func TestContentType(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	body := `{"name":"x","categoryId":1}`
	post := func(lines ...string) *contract.Response {
		t.Helper()
		return s.Do(t, contract.Request{Method: "POST", Target: "/v1/pets", Body: body, Header: lines})
	}
	for _, line := range []string{
		"Content-Type: application/json", "content-type:APPLICATION/json", `Content-Type: Application/JSON; Charset="UTF-8"`,
		"Content-Type: application/json;charset=utf-8", "Content-Type: application/json; x=y", "Content-Type: application/json ;charset=UTF-8",
	} {
		want(t, post(line), 201, "")
	}
	for _, lines := range [][]string{
		nil, {"Content-Type:"}, {"Content-Type: text/plain"}, {"Content-Type: text/json"}, {"Content-Type: application/x-www-form-urlencoded"},
		{"Content-Type: application/vnd.pets+json"}, {"Content-Type: application/merge-patch+json"}, {"Content-Type: application/json; charset=utf-16"},
		{"Content-Type: application/json, application/json"}, {"Content-Type: application/json", "Content-Type: application/json"},
		{"Content-Type: application/json", "Content-Type: text/plain"}, {"Content-Type: json"}, {"Content-Type: */*"}, {"Content-Type: application/*"},
		{"Content-Type: application/json; charset"}, {"Content-Type: \xff"},
	} {
		resp := post(lines...)
		want(t, resp, 415, "unsupported_media_type")
		if got := resp.Header.Get("Accept"); got != "application/json" {
			t.Errorf("%q: Accept is %q, want what is accepted", lines, got)
		}
	}
	for _, coding := range []string{"gzip", "br", "identity, gzip", "x"} {
		resp := post("Content-Type: application/json", "Content-Encoding: "+coding)
		want(t, resp, 415, "unsupported_media_type")
		if got := resp.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Content-Encoding: %s: Accept-Encoding is %q, want identity", coding, got)
		}
	}
	want(t, post("Content-Type: application/json", "Content-Encoding: identity"), 201, "")
}

func TestAcceptChoosesTheFormOfErrors(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for accept, problem := range map[string]bool{
		"":                              false,
		"*/*":                           false,
		"application/*":                 false,
		"application/json":              false,
		"application/json;q=1.0000":     false,
		"text/html":                     false,
		"application/problem+json":      true,
		"application/Problem+JSON":      true,
		"application/json;q=0, */*":     true,
		"application/problem+json, */*": false,
		"application/json, application/problem+json":       false,
		"application/json;q=0.5, application/problem+json": true,
		"application/problem+json;Q=0.1, application/json": false,
		strings.Repeat("a/b,", 4000):                       false,
	} {
		resp := s.Get(t, "/v1/pets/99", "Accept: "+accept)
		want(t, resp, 404, "pet_not_found")
		if got := resp.Header.Get("Content-Type") == "application/problem+json"; got != problem {
			t.Errorf("Accept: %.60s: problem details are sent: %t, want %t", accept, got, problem)
		}
		want(t, s.Get(t, "/v1/pets", "Accept: "+accept), 200, "") // what is asked for is JSON, whatever is accepted
	}
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	json := "Content-Type: application/json"
	padded := func(size int) string {
		body := `{"name":"x","categoryId":1}`
		return body + strings.Repeat(" ", size-len(body))
	}
	want(t, s.Post(t, "/v1/pets", padded(65536)), 201, "")
	over := map[string]string{
		"announced":          fmt.Sprintf("Content-Length: 65537\r\n\r\n%s", padded(65537)),
		"announced only":     "Content-Length: 65537\r\n\r\n",
		"announced by far":   "Content-Length: 9223372036854775807\r\n\r\n",
		"chunked":            fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", 65537, padded(65537)),
		"chunked by octets":  "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\n \r\n", 65537) + "0\r\n\r\n",
		"chunked for ever":   "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("ffff\r\n"+strings.Repeat(" ", 0xffff)+"\r\n", 3),
		"expecting continue": "Expect: 100-continue\r\nContent-Length: 65537\r\n\r\n",
	}
	for name, rest := range over {
		resp := s.Raw(t, "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.Key+"\r\n"+json+"\r\n"+rest)
		want(t, resp, 413, "body_too_large")
		if resp.Header.Get("Connection") != "close" || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%s: Connection is %q and Retry-After %q, want close and none", name, resp.Header.Get("Connection"), resp.Header.Get("Retry-After"))
		}
	}
	exact := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nTrailer: x\r\n\r\n", 65536, padded(65536))
	want(t, s.Raw(t, "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.Key+"\r\n"+json+"\r\n"+exact), 201, "")
}

// A client that waits for 100 Continue is told at once what its header section
// alone gets it, and does not send the body.
func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	small := s.with(s.key(t, "small", "enterprise", "1/minute"))
	small.Get(t, "/v1/pets")
	auth := "Authorization: Bearer " + s.Key
	for name, test := range map[string]struct {
		line   string
		header []string
		status int
	}{
		"401": {"POST /v1/pets", nil, 401},
		"404": {"POST /v1/nothing", []string{auth}, 404},
		"405": {"PUT /v1/pets", []string{auth}, 405},
		"415": {"POST /v1/pets", []string{auth, "Content-Type: text/plain"}, 415},
		"429": {"POST /v1/pets", []string{"Authorization: Bearer " + small.Key}, 429},
	} {
		for _, expect := range []string{"Expect: 100-continue", "expect: 100-Continue"} {
			octets := test.line + " HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n" + expect + "\r\n"
			for _, line := range test.header {
				octets += line + "\r\n"
			}
			if resp := s.Raw(t, octets+"\r\n"); resp.StatusCode != test.status {
				t.Errorf("%s, %s: status %d", name, expect, resp.StatusCode)
			}
		}
	}
	t.Run("a body that is wanted is asked for", func(t *testing.T) {
		conn := s.Dial(t)
		defer conn.Close()
		body := `{"name":"x","categoryId":1}`
		head := "POST /v1/pets HTTP/1.1\r\nHost: x\r\n" + auth + "\r\nContent-Type: application/json\r\n" +
			"Expect: 100-continue\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatal(err)
		}
		from := bufio.NewReader(conn)
		line, err := from.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
			t.Fatalf("the server says %q (%v), want 100 Continue", line, err)
		}
		if _, err := from.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, body); err != nil {
			t.Fatal(err)
		}
		resp, err := s.Read(from, head)
		if err != nil {
			t.Fatal(err)
		}
		s.Check(t, resp)
		want(t, resp, 201, "")
	})
}

func TestBodiesThatAreNotRead(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	t.Run("a large one closes the connection", func(t *testing.T) {
		resp := s.Raw(t, "POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n"+strings.Repeat("x", 300000))
		want(t, resp, 401, "missing_api_key")
		if resp.Header.Get("Connection") != "close" {
			t.Error("the connection stays open, with the body still to come")
		}
	})
	t.Run("a small one is skipped, and the next request answered", func(t *testing.T) {
		conn := s.Dial(t)
		defer conn.Close()
		first := "POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\nGET /x HTTP/1.1\r\n\r\n\r\n\r\n"
		second := "GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.Key + "\r\n\r\n"
		if _, err := io.WriteString(conn, first+second); err != nil {
			t.Fatal(err)
		}
		from := bufio.NewReader(conn)
		for octets, status := range map[string]int{first: 401} {
			resp, err := s.Read(from, octets)
			if err != nil {
				t.Fatal(err)
			}
			s.Check(t, resp)
			want(t, resp, status, "missing_api_key")
		}
		resp, err := s.Read(from, second)
		if err != nil {
			t.Fatal(err)
		}
		s.Check(t, resp)
		want(t, resp, 200, "")
	})
	t.Run("that of a GET is ignored", func(t *testing.T) {
		want(t, s.Do(t, contract.Request{Target: "/v1/pets", Body: "not JSON", Header: []string{"Content-Type: text/plain"}}), 200, "")
	})
}
