package apierror

import (
	"mime"
	"slices"
	"strconv"
	"strings"
)

// maxAccept is how many bytes of Accept are read. Browsers send about 150. A client
// that sends more than maxAccept gets the default.
const maxAccept = 4 << 10

// prefersProblem reports whether a client that sent these Accept field lines
// prefers application/problem+json to application/json. The most specific range
// that matches a media type gives its quality, at any position; of equally
// specific ones the highest counts; without a match the quality is 0 (RFC 9110 sections 12.4.2 and
// 12.5.1). A malformed member is skipped, and the others count.
func prefersProblem(lines []string) bool {
	total, named := 0, false
	for _, line := range lines {
		if total += len(line) + 1; total > maxAccept {
			return false
		}
		named = named || strings.Contains(strings.ToLower(line), "json")
	}
	if !named {
		return false // ranges with a wildcard match both
	}
	var envelope, problem preference
	for _, line := range lines {
		for line != "" {
			var member string
			member, line = cutMember(line)
			if r, quality, ok := parseRange(member); ok {
				envelope.consider(r, mediaEnvelope, quality)
				problem.consider(r, mediaProblem, quality)
			}
		}
	}
	return problem.quality > envelope.quality
}

// preference is the quality of one media type by the ranges read so far.
type preference struct {
	specificity int // of the range that decides, 0 if none matched
	quality     float64
}

func (p *preference) consider(mediaRange, mediaType string, quality float64) {
	s := 0
	switch mediaRange {
	case "*/*":
		s = 1
	case "application/*":
		s = 2
	case mediaType:
		s = 3
	}
	if s > p.specificity || s > 0 && s == p.specificity && quality > p.quality {
		*p = preference{s, quality}
	}
}

// cutMember splits s after the first comma that is not in a quoted string.
func cutMember(s string) (member, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++ // a quoted-pair
		case c == ',' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// parseRange returns the range of a member in lower case, and its weight, q. A range with
// other parameters is not ok, as neither media type here has any; except that clients add
// the charset, and JSON is always UTF-8 (RFC 8259 section 8.1).
func parseRange(member string) (mediaRange string, quality float64, ok bool) {
	mediaRange, parameters, err := mime.ParseMediaType(member)
	if err != nil && strings.Contains(member, ";") { // package mime refuses empty parameters
		first, rest, _ := strings.Cut(member, ";")
		parts := slices.DeleteFunc(strings.Split(rest, ";"), func(p string) bool { return strings.TrimSpace(p) == "" })
		mediaRange, parameters, err = mime.ParseMediaType(first + ";" + strings.Join(parts, ";"))
	}
	if err != nil {
		return "", 0, false
	}
	quality = 1
	for name, value := range parameters {
		switch {
		case name == "q":
			quality, err = strconv.ParseFloat(value, 64)
			if err != nil || !(quality >= 0 && quality <= 1) { // NaN is neither
				return "", 0, false
			}
		case name != "charset" || !strings.EqualFold(value, "utf-8"):
			return "", 0, false
		}
	}
	return mediaRange, quality, true
}
