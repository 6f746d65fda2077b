package transport

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

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
	listSyntax  = regexp.MustCompile(`^ *(?:` + sfMember + `(?:[ \t]*,[ \t]*` + sfMember + `)*)? *$`)
	firstMember = regexp.MustCompile(`^[ \t]*(` + sfMember + `)[ \t]*(?:,|$)`)
	quotaSyntax = regexp.MustCompile(`^` + sfString + `(` + sfParameters + `)$`)
	parameter   = regexp.MustCompile(`; *(` + sfKey + `)(?:=(` + sfBareItem + `))?`)
)

// quotaState is what a RateLimit field says about one quota.
type quotaState struct {
	remaining int64
	reset     time.Duration // 0: not given
}

// parseRateLimit reads the RateLimit fields of a message: a List of Strings, each with
// the Integer r, what remains, for the next t seconds (draft-11 section 4). A member
// that is not a String or has no r is malformed and ignored. A field that is not a
// List is ignored as a whole.
func parseRateLimit(fields []string) []quotaState {
	field := strings.Join(fields, ", ")
	if len(field) > maxFieldBytes || !listSyntax.MatchString(field) {
		return nil
	}
	var states []quotaState
	for {
		match := firstMember.FindStringSubmatch(field)
		if match == nil {
			return states
		}
		field = field[len(match[0]):]
		if quota := quotaSyntax.FindStringSubmatch(match[1]); quota != nil {
			r, ok := integerParameter(quota[1], "r")
			t, _ := integerParameter(quota[1], "t")
			if ok {
				states = append(states, quotaState{r, seconds(t)})
			}
		}
	}
}

// integerParameter returns the value of a parameter, if it is an Integer that is not
// negative. If the key is repeated, the last one counts (RFC 9651 section 4.2.3.2).
func integerParameter(parameters, key string) (n int64, ok bool) {
	for _, match := range parameter.FindAllStringSubmatch(parameters, -1) {
		if match[1] == key {
			var err error
			n, err = strconv.ParseInt(match[2], 10, 64)
			ok = err == nil && n >= 0
		}
	}
	if !ok {
		return 0, false
	}
	return n, true
}
