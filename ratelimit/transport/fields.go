package transport

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// longest bounds every time that a server names, so that sums cannot overflow.
	longest = 10 * 365 * 24 * time.Hour

	// firstUnixTime tells the two meanings of X-RateLimit-Reset apart. From this number
	// on it is a Unix time, and below it a number of seconds: this one would be a time in
	// 1973, or three years. Clocks of tests often begin in 2000 (testing/synctest).
	firstUnixTime = 100_000_000

	// firstUnixMilli is the same for milliseconds, which some services send: as seconds,
	// it would be a time in 5138.
	firstUnixMilli = firstUnixTime * 1000
)

// limits is what the rate limit fields of a response say.
type limits struct {
	present bool          // there is a well-formed field
	empty   bool          // a quota has nothing left
	reset   time.Duration // time from the response until all such quotas have room; 0: not known, or over
}

// readLimits reads X-RateLimit-Remaining and -Reset (of Gatehouse and GitHub: Unix
// time; of others: Unix time in milliseconds, or seconds from now), RateLimit of
// draft-ietf-httpapi-ratelimit-headers-11, and RateLimit-Remaining and -Reset of its
// drafts up to 06. Malformed fields are ignored. The clock is the server's; see
// serverTime.
func readLimits(h http.Header, server time.Time) limits {
	var l limits
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		l.readPairs(h[prefix+"Remaining"], h[prefix+"Reset"], server)
	}
	l.readList(h["Ratelimit"])
	return l
}

// readPairs reads the values of a Remaining and a Reset field. If a gateway and a
// service behind it have both sent them, the fields have two values each.
func (l *limits) readPairs(remaining, reset []string, server time.Time) {
	left, leftOK := parseNumbers(remaining, false)
	ends, endsOK := parseNumbers(reset, true)
	if !leftOK || !endsOK || len(left) != len(ends) {
		return
	}
	for i := range left {
		wait := seconds(ends[i])
		switch end := ends[i]; {
		case end >= firstUnixMilli:
			wait = min(time.UnixMilli(end).Sub(server), longest)
		case end >= firstUnixTime:
			wait = min(time.Unix(end, 0).Sub(server), longest)
		}
		l.add(left[i], wait)
	}
}

func (l *limits) add(remaining int64, reset time.Duration) {
	l.present = true
	if remaining == 0 {
		l.empty = true
		l.reset = max(l.reset, reset)
	}
}

// retryAfter reads Retry-After, a number of seconds or an HTTP-date (RFC 9110 section
// 10.2.3), and reports whether there is a well-formed one. Of several the longest
// counts. A date in the past is 0.
func retryAfter(h http.Header, server time.Time) (wait time.Duration, ok bool) {
	for _, value := range h["Retry-After"] {
		value = strings.Trim(value, " \t")
		if n, isNumber := parseInteger(value); isNumber {
			wait, ok = max(wait, seconds(n)), true
		} else if date, err := http.ParseTime(value); err == nil {
			wait, ok = max(wait, min(date.Sub(server), longest)), true
		}
	}
	return wait, ok
}

// serverTime returns the time of the response by the server's clock, which absolute
// times in its fields are compared with. Without a Date it is the clock of this
// process, now.
func serverTime(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}

// parseNumbers reads values of 1*DIGIT, one or several in each. Some services send
// fractions; these are rounded up or down.
func parseNumbers(values []string, up bool) (numbers []int64, ok bool) {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			whole, fraction, dotted := strings.Cut(strings.Trim(part, " \t"), ".")
			n, ok := parseInteger(whole)
			if _, digits := parseInteger(fraction); !ok || dotted && !digits {
				return nil, false
			}
			if up && strings.Trim(fraction, "0") != "" {
				n++
			}
			numbers = append(numbers, n)
		}
	}
	return numbers, true
}

// parseInteger reads 1*DIGIT. What exceeds 18 digits is cut down to them.
func parseInteger(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 999_999_999_999_999_999, true
	}
	return n, true
}

// seconds returns n seconds, but at most longest.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(longest/time.Second))) * time.Second
}

// maxFieldBytes is the length of the longest RateLimit field that is read.
const maxFieldBytes = 4 << 10

// The syntax of a List, as RFC 9651 section 3 defines it, in regular expressions.
const (
	sfString   = `"(?:[ !#-\[\]-~]|\\["\\])*"`
	sfBareItem = `(?:-?[0-9]{1,12}\.[0-9]{1,3}|` + // Decimal, first: an Integer is the beginning of one
		`-?[0-9]{1,15}|` + // Integer
		sfString + `|` +
		"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*|" + // Token
		`:[A-Za-z0-9+/=]*:|` + // Byte Sequence
		`\?[01]|` + // Boolean
		`@-?[0-9]{1,15}|` + // Date
		`%"(?:[ !#$&-~]|%[0-9a-f]{2})*")` // Display String
	sfKey        = `[a-z*][a-z0-9_.*-]*`
	sfParameters = `(?:; *` + sfKey + `(?:=` + sfBareItem + `)?)*`
	sfItem       = sfBareItem + sfParameters
	sfInnerList  = `\( *(?:` + sfItem + `(?: +` + sfItem + `)*)? *\)` + sfParameters
	sfMember     = `(?:` + sfItem + `|` + sfInnerList + `)`
)

var (
	listSyntax   = regexp.MustCompile(`^ *(?:` + sfMember + `(?:[ \t]*,[ \t]*` + sfMember + `)*)? *$`)
	memberSyntax = regexp.MustCompile(`[ \t]*(` + sfMember + `)[ \t]*(?:,|$)`)
	quotaSyntax  = regexp.MustCompile(`^` + sfString + `(` + sfParameters + `)$`)
	parameter    = regexp.MustCompile(`; *(` + sfKey + `)(?:=(` + sfBareItem + `))?`)
)

// readList reads the RateLimit fields of a message: a List of Strings, each with the
// Integer r, what remains, for the next t seconds (draft-11 section 4). The draft may rename
// them to a and w, which are read if there is no r. A member that is not a String or has
// neither is malformed and ignored. A field that is not a List is ignored as a whole.
func (l *limits) readList(fields []string) {
	field := strings.Join(fields, ", ")
	if len(field) > maxFieldBytes || !listSyntax.MatchString(field) {
		return
	}
	for _, member := range memberSyntax.FindAllStringSubmatch(field, -1) {
		if quota := quotaSyntax.FindStringSubmatch(member[1]); quota != nil {
			for _, names := range [][2]string{{"r", "t"}, {"a", "w"}} {
				if left, ok := integerParameter(quota[1], names[0]); ok {
					t, _ := integerParameter(quota[1], names[1])
					l.add(left, seconds(t))
					break
				}
			}
		}
	}
}

// integerParameter returns the value of a parameter, or 0 and false if it is not an Integer
// of 0 or more. If the key is repeated, the last one counts (RFC 9651 section 4.2.3.2).
func integerParameter(parameters, key string) (n int64, ok bool) {
	value := ""
	for _, match := range parameter.FindAllStringSubmatch(parameters, -1) {
		if match[1] == key {
			value = match[2]
		}
	}
	return parseInteger(value)
}
