package contract_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
)

var now = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// response makes a response that is as it should be.
func response(method, target string, status int, body string) *contract.Response {
	r := &contract.Response{
		Response: &http.Response{StatusCode: status, Header: make(http.Header)},
		Method:   method, Target: target, Data: []byte(body),
	}
	for name, value := range map[string]string{
		"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "59", "X-RateLimit-Reset": strconv.FormatInt(now.Unix()+60, 10),
		"X-Request-Id": "x", "Date": "Fri, 20 Nov 2026 12:00:00 GMT", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "no-referrer",
	} {
		r.Header.Set(name, value)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	if status >= 400 {
		r.Header.Set("Vary", "Accept")
	}
	return r
}

func failed(target string, status int, code string, fields ...string) *contract.Response {
	r := response("GET", target, status, `{"code":"`+code+`","message":"m","status":`+strconv.Itoa(status)+`}`)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

func list() *contract.Response {
	r := response("GET", "/v1/pets", 200, `[{"id":1,"name":"Duke","categoryId":3,"status":"available"}]`)
	r.Header.Set("ETag", `"x"`)
	return set(r, "Vary", "Accept-Encoding")
}

func pet() *contract.Response {
	r := response("GET", "/v1/pets/1", 200, `{"id":1,"name":"Duke","categoryId":3,"status":"available"}`)
	r.Header.Set("ETag", `"x"`)
	r.Header.Set("Deprecation", "@1764892800")
	return r
}

func limited() *contract.Response {
	return failed("/v1/pets", 429, "rate_limit_exceeded", "X-RateLimit-Remaining", "0", "Retry-After", "60")
}

func unauthorized() *contract.Response {
	return failed("/v1/pets", 401, "missing_api_key", "WWW-Authenticate", `Bearer realm="pets"`)
}

func set(r *contract.Response, name, value string) *contract.Response {
	r.Header.Set(name, value)
	return r
}

func add(r *contract.Response, name, value string) *contract.Response {
	r.Header.Add(name, value)
	return r
}

func del(r *contract.Response, name string) *contract.Response {
	r.Header.Del(name)
	return r
}

func with(r *contract.Response, body string) *contract.Response {
	r.Data = []byte(body)
	return set(r, "Content-Length", strconv.Itoa(len(body)))
}

func method(r *contract.Response, m string) *contract.Response {
	r.Method = m
	return r
}

func TestCheck(t *testing.T) {
	document, err := openapi.New(openapi.Options{Deprecations: map[string]deprecation.Options{"getPet": {Since: now}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.New(document)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*contract.Response{
		"a list":                 list(),
		"an empty list":          with(list(), "[]"),
		"a pet":                  pet(),
		"a limited request":      limited(),
		"no key":                 unauthorized(),
		"no key on another path": failed("/v1/x", 401, "missing_api_key", "WWW-Authenticate", `Bearer realm="pets"`),
		"another path":           failed("/x", 404, "not_found"),
		"another method":         method(failed("/v1/pets", 405, "method_not_allowed", "Allow", "GET"), "PUT"),
		"OPTIONS":                response("OPTIONS", "/v1/pets", 204, ""),
		"HEAD":                   method(with(list(), ""), "HEAD"),
		"not modified":           set(set(response("GET", "/v1/pets/1", 304, ""), "ETag", `"x"`), "Deprecation", "@1"),
	} {
		if err := c.Check(r, now); err != nil {
			t.Errorf("%s is as promised, and complained about: %v", name, err)
		}
	}
	for name, r := range map[string]*contract.Response{
		"no X-RateLimit-Limit":               del(list(), "X-RateLimit-Limit"),
		"X-RateLimit-Limit twice":            add(list(), "X-RateLimit-Limit", "60"),
		"a limit that is no number":          set(list(), "X-RateLimit-Limit", "60, 60;w=60"),
		"more remaining than the limit":      set(list(), "X-RateLimit-Remaining", "61"),
		"a negative remaining":               set(list(), "X-RateLimit-Remaining", "-1"),
		"a reset in seconds from now":        set(list(), "X-RateLimit-Reset", "60"),
		"a reset in milliseconds":            set(list(), "X-RateLimit-Reset", strconv.FormatInt(now.UnixMilli(), 10)),
		"no Date":                            del(list(), "Date"),
		"no request ID":                      del(list(), "X-Request-Id"),
		"a response to be stored":            set(list(), "Cache-Control", "max-age=60"),
		"Server":                             set(list(), "Server", "x/1.0"),
		"a charset":                          set(list(), "Content-Type", "application/json; charset=utf-8"),
		"a wrong length":                     set(list(), "Content-Length", "1"),
		"null for no pets":                   with(list(), "null"),
		"a pet without an id":                with(list(), `[{"name":"x","categoryId":1,"status":"sold"}]`),
		"a pet without a status":             with(list(), `[{"id":1,"name":"x","categoryId":1}]`),
		"a pet with an unknown status":       with(list(), `[{"id":1,"name":"x","categoryId":1,"status":""}]`),
		"an id over 2^53":                    with(list(), `[{"id":9007199254740993,"name":"x","categoryId":1,"status":"sold"}]`),
		"a status that is not declared":      response("GET", "/v1/pets", 202, "[]"),
		"success on another path":            response("GET", "/v1/x", 200, "[]"),
		"deprecated without a reason":        set(list(), "Deprecation", "@1764892800"),
		"a deprecated pet that is not told":  del(pet(), "Deprecation"),
		"a Deprecation that is a date":       set(pet(), "Deprecation", "Fri, 05 Dec 2025 00:00:00 GMT"),
		"a Sunset in UTC":                    set(pet(), "Sunset", "Thu, 05 Dec 2030 00:00:00 UTC"),
		"a pet without an ETag":              del(pet(), "ETag"),
		"429 without Retry-After":            del(limited(), "Retry-After"),
		"429 with a fraction of a second":    set(limited(), "Retry-After", "1.5"),
		"429 to be retried at once":          set(limited(), "Retry-After", "0"),
		"429 to be retried too soon":         set(limited(), "Retry-After", "59"),
		"429 with something remaining":       set(limited(), "X-RateLimit-Remaining", "1"),
		"Retry-After without need":           set(unauthorized(), "Retry-After", "1"),
		"401 without a challenge":            del(unauthorized(), "WWW-Authenticate"),
		"401 with a bare challenge":          set(unauthorized(), "WWW-Authenticate", "Bearer"),
		"405 without Allow":                  method(failed("/v1/pets", 405, "method_not_allowed"), "PUT"),
		"an error without Vary":              del(unauthorized(), "Vary"),
		"an error in plain text":             set(with(unauthorized(), "no"), "Content-Type", "text/plain"),
		"an error with another status in it": with(unauthorized(), `{"code":"missing_api_key","message":"m","status":400}`),
		"an error with one member more":      with(unauthorized(), `{"code":"missing_api_key","message":"m","status":401,"x":1}`),
		"an error with one member less":      with(unauthorized(), `{"code":"missing_api_key","status":401}`),
		"an error with another code":         with(unauthorized(), `{"code":"unauthorized","message":"m","status":401}`),
		"a coding without Vary":              set(del(list(), "Vary"), "Content-Encoding", "gzip"),
		"HEAD with a body":                   method(list(), "HEAD"),
		"204 with a body":                    response("OPTIONS", "/v1/pets", 204, "x"),
		"304 without its ETag":               set(response("GET", "/v1/pets/1", 304, ""), "Deprecation", "@1"),
		"a key in a field":                   set(list(), "X-Debug", "pet_live_0123456789abcdefghijklmnopqrstuvwxyz"),
	} {
		if c.Check(r, now) == nil {
			t.Errorf("%s: nothing is complained about", name)
		}
	}
}
