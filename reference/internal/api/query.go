package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// listParameters are the query parameters of listPets.
var listParameters = [...]string{"limit", "status", "cursor"}

// parseListQuery reads the query of listPets. Its errors are 400.
func parseListQuery(raw string, limit openapi.Range) (store.ListQuery, error) {
	q := store.ListQuery{Limit: limit.Default}
	if raw == "" {
		return q, nil
	}
	values, err := parseQuery(raw)
	if err != nil {
		return q, err
	}
	if text, ok := values["limit"]; ok {
		if q.Limit, ok = parseInt(text, limit.Min, limit.Max); !ok {
			return q, invalidParameter(fmt.Sprintf("The parameter limit must be an integer from %d to %d.", limit.Min, limit.Max))
		}
	}
	if text, ok := values["status"]; ok {
		// A copy, because pages are kept by their queries, and text would keep the whole
		// target of the request in memory.
		if q.Status = store.Status(strings.Clone(text)); !q.Status.Valid() {
			return q, invalidParameter(fmt.Sprintf("The parameter status must be one of %s, %s, %s.", store.Available, store.Pending, store.Sold))
		}
	}
	if text, ok := values["cursor"]; ok {
		if q.After, ok = decodeCursor(text, q.Status); !ok {
			return q, invalidParameter("The parameter cursor is not valid. Take it from the Link header of the previous page, and send the same status with it.")
		}
	}
	return q, nil
}

// parseQuery returns the parameters of listPets that are present.
//
// [url.URL.Query] drops malformed pairs without an error, and with them a filter that
// the client relies on.
func parseQuery(raw string) (map[string]string, error) {
	all, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalidParameter("The query string is malformed: it contains a semicolon or invalid percent-encoding.")
	}
	for name, values := range all {
		for _, text := range append(values, name) {
			if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
				return nil, invalidParameter("The query string must be UTF-8 without NUL characters.")
			}
		}
	}
	known := make(map[string]string, len(listParameters))
	for _, name := range listParameters {
		switch values, ok := all[name]; {
		case !ok:
		case len(values) > 1:
			return nil, invalidParameter("The parameter " + name + " must not be repeated.")
		default:
			known[name] = values[0]
		}
	}
	for name := range all {
		// Some clients send lists as status[]=sold. Ignoring it like an unknown
		// parameter would return pets that the client did not ask for.
		if base, _, isList := strings.Cut(name, "["); isList {
			for _, name := range listParameters {
				if base == name {
					return nil, invalidParameter("The parameter " + name + " takes one value, not a list.")
				}
			}
		}
	}
	return known, nil
}

// parseInt parses a canonical decimal integer: digits without leading zeros.
// [strconv.Atoi] accepts +5 and 05 too.
func parseInt(text string, lowest, highest int) (n int, ok bool) {
	const maxDigits = 9 // no overflow
	if text == "" || len(text) > maxDigits || text[0] == '0' {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, lowest <= n && n <= highest
}

func invalidParameter(message string) *apierror.Error {
	return apierror.New(http.StatusBadRequest, apierror.CodeInvalidParameter, message)
}
