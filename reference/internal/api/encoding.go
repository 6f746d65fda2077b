package api

import (
	"strconv"
	"strings"
)

// acceptsGzip reports whether a client that sent these Accept-Encoding field lines
// accepts gzip, and does not prefer to have no coding (RFC 9110 section 12.5.3).
// Malformed members are skipped.
//
//	Accept-Encoding = #( codings [ weight ] )
//	codings         = content-coding / "identity" / "*"
func acceptsGzip(lines []string) bool {
	gzip, identity, any := -1.0, -1.0, -1.0
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			coding, weight, weighed := strings.Cut(member, ";")
			q := 1.0
			if weighed {
				var ok bool
				if q, ok = parseWeight(weight); !ok {
					continue
				}
			}
			switch strings.ToLower(strings.Trim(coding, " \t")) {
			case "gzip", "x-gzip": // the same (RFC 9110 section 8.4.1.3)
				gzip = max(gzip, q)
			case "identity":
				identity = max(identity, q)
			case "*":
				any = max(any, q)
			}
		}
	}
	if gzip < 0 {
		gzip = any
	}
	return gzip > 0 && gzip >= identity
}

// parseWeight reads what follows the semicolon of a weight (RFC 9110 section
// 12.4.2): "q=" and a number from 0 to 1 with at most three decimals.
func parseWeight(text string) (q float64, ok bool) {
	name, value, _ := strings.Cut(strings.Trim(text, " \t"), "=")
	if !strings.EqualFold(name, "q") || value == "" || len(value) > len("0.000") {
		return 0, false
	}
	for i, c := range []byte(value) {
		if (c < '0' || c > '9') && !(c == '.' && i == 1) {
			return 0, false
		}
	}
	q, err := strconv.ParseFloat(value, 64)
	return q, err == nil && q <= 1
}
