package deprecation

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxFieldBytes is the length of the longest Deprecation or Sunset field that is read.
const maxFieldBytes = 256

// parameters is the syntax of the parameters that may follow the Item of a
// Structured Field (RFC 9651 section 4.2.3.2). None is defined for Deprecation, so
// they are checked and ignored.
var parameters = regexp.MustCompile(`^(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:` +
	`-?[0-9]{1,15}|` + // Integer
	`-?[0-9]{1,12}\.[0-9]{1,3}|` + // Decimal
	`"(?:[ !#-\[\]-~]|\\["\\])*"|` + // String
	"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*|" + // Token
	`:[A-Za-z0-9+/=]*:|` + // Byte Sequence
	`\?[01]|` + // Boolean
	`@-?[0-9]{1,15}|` + // Date
	`%"(?:[ !#$&-~]|%[0-9a-f]{2})*"` + // Display String
	`))?)*$`)

// FormatDeprecation returns the value of the Deprecation field for t: a
// Structured Field Date such as "@1764892800" (RFC 9745 section 2.1). Parts of a
// second are cut off. A Date has at most fifteen digits, which is about thirty
// million years on either side of 1970.
func FormatDeprecation(t time.Time) string {
	return "@" + strconv.FormatInt(t.Unix(), 10)
}

// ParseDeprecation reads the value of a Deprecation field: a Structured Field
// Date, negative ones included, with at most fifteen digits. Parameters after
// the Date are ignored if they are well-formed. The values of earlier drafts,
// "true" and an HTTP-date, are errors. The time is in UTC.
func ParseDeprecation(value string) (time.Time, error) {
	if len(value) > maxFieldBytes {
		return time.Time{}, fmt.Errorf("deprecation: Deprecation must have at most %d bytes, got %d", maxFieldBytes, len(value))
	}
	item, ok := strings.CutPrefix(strings.Trim(value, " "), "@")
	if !ok {
		return time.Time{}, fmt.Errorf(`deprecation: Deprecation must be "@" and Unix seconds, got %.40q`, value)
	}
	end := strings.IndexByte(item, ';')
	if end < 0 {
		end = len(item)
	}
	seconds, ok := sfInteger(item[:end])
	if !ok {
		return time.Time{}, fmt.Errorf(`deprecation: Deprecation must have an integer of 1 to 15 digits after "@", got %.40q`, value)
	}
	if !parameters.MatchString(item[end:]) {
		return time.Time{}, fmt.Errorf("deprecation: Deprecation has malformed parameters: %.40q", item[end:])
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// sfInteger reads an Integer of RFC 9651 section 3.3.1: fifteen digits at most,
// and unlike strconv.ParseInt no plus sign.
func sfInteger(s string) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if len(digits) < 1 || len(digits) > 15 {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// FormatSunset returns the value of the Sunset field for t: an IMF-fixdate in
// GMT such as "Thu, 05 Dec 2030 00:00:00 GMT" (RFC 8594 section 3, RFC 9110
// section 5.6.7). Parts of a second are cut off. An IMF-fixdate has years from
// 0000 to 9999.
func FormatSunset(t time.Time) string {
	return t.UTC().Format(http.TimeFormat)
}

// ParseSunset reads the value of a Sunset field: an HTTP-date in any of the three
// forms that a recipient has to accept (RFC 9110 section 5.6.7), which are all
// in GMT. A day name that does not match the date is accepted, because the example
// in RFC 8594 has one. The time is in UTC.
func ParseSunset(value string) (time.Time, error) {
	return parseHTTPDate(value, time.Now())
}

// parseHTTPDate reads an HTTP-date. The time of reading, now, places the two
// digits of an RFC 850 year.
func parseHTTPDate(value string, now time.Time) (time.Time, error) {
	if len(value) > maxFieldBytes {
		return time.Time{}, fmt.Errorf("deprecation: Sunset must have at most %d bytes, got %d", maxFieldBytes, len(value))
	}
	value = strings.Trim(value, " \t")
	// A leap second is valid, but a time.Time cannot hold it.
	text := strings.Replace(value, ":59:60", ":59:59", 1)
	t, ok := parseExact(http.TimeFormat, text)
	if !ok {
		t, ok = parseExact(time.ANSIC, text)
	}
	if !ok {
		t, ok = parseRFC850(text, now)
	}
	if !ok {
		return time.Time{}, fmt.Errorf("deprecation: Sunset must be an HTTP-date in GMT, got %.40q", value)
	}
	if text != value {
		t = t.Add(time.Second)
	}
	return t, nil
}

// parseExact is time.Parse without its leniency: time.Parse accepts single digits,
// fractions of a second and names in any case, which an HTTP-date cannot have. Only
// the name of the day may differ.
func parseExact(layout, text string) (time.Time, bool) {
	t, err := time.Parse(layout, text)
	if err != nil {
		return time.Time{}, false
	}
	_, rest, ok := strings.Cut(text, " ")
	_, want, _ := strings.Cut(t.Format(layout), " ")
	return t, ok && rest == want
}

// parseRFC850 reads the obsolete form with a year of two digits, which stands for
// the last such year that is not more than fifty years ahead of now.
func parseRFC850(text string, now time.Time) (time.Time, bool) {
	t, ok := parseExact("Monday, 02-Jan-06 15:04:05 GMT", text)
	if !ok {
		return time.Time{}, false
	}
	limit := now.UTC().AddDate(50, 0, 0)
	year := limit.Year() - limit.Year()%100 + t.Year()%100
	at := func(year int) time.Time {
		return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	if at(year).After(limit) {
		year -= 100
	}
	// In the century chosen the year may lack the 29 February.
	return at(year), at(year).Day() == t.Day()
}
