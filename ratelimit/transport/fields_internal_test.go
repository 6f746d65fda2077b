package transport

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// noon is the server's clock in these tests.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// header makes a header of lines "Name: value".
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestReadLimits(t *testing.T) {
	for name, test := range map[string]struct {
		header []string
		want   limits
	}{
		"none":                        {nil, limits{}},
		"Unix time":                   {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772366417"}, limits{true, true, 17 * time.Second}},
		"some left":                   {[]string{"X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 1772366417"}, limits{present: true}},
		"seconds":                     {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 17"}, limits{true, true, 17 * time.Second}},
		"the largest seconds":         {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 99999999"}, limits{true, true, 99999999 * time.Second}},
		"the smallest Unix time":      {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 100000000"}, limits{present: true, empty: true}},
		"Unix time in the past":       {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772366400"}, limits{present: true, empty: true}},
		"far future":                  {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 99999999999999999999999"}, limits{true, true, longest}},
		"milliseconds since 1970":     {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772366417250"}, limits{true, true, 17250 * time.Millisecond}},
		"the largest Unix time":       {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 99999999999"}, limits{true, true, longest}},
		"the smallest milliseconds":   {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 100000000000"}, limits{present: true, empty: true}},
		"fractions":                   {[]string{"X-RateLimit-Remaining: 0.9", "X-RateLimit-Reset: 1772366416.123"}, limits{true, true, 17 * time.Second}},
		"fractions of nothing":        {[]string{"X-RateLimit-Remaining: 1.0", "X-RateLimit-Reset: 17.0"}, limits{present: true}},
		"whole as a fraction":         {[]string{"X-RateLimit-Remaining: 0.0", "X-RateLimit-Reset: 17.00"}, limits{true, true, 17 * time.Second}},
		"not fractions":               {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 17."}, limits{}},
		"two fractions":               {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1.2.3"}, limits{}},
		"no whole number":             {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: .5"}, limits{}},
		"suspended":                   {[]string{"X-RateLimit-Limit: 0", "X-RateLimit-Remaining: 0"}, limits{}},
		"no remaining":                {[]string{"X-RateLimit-Reset: 1772366417"}, limits{}},
		"signs":                       {[]string{"X-RateLimit-Remaining: -0", "X-RateLimit-Reset: +17"}, limits{}},
		"not numbers":                 {[]string{"X-RateLimit-Remaining: none", "X-RateLimit-Reset: 2026-03-01T12:00:17Z"}, limits{}},
		"empty":                       {[]string{"X-RateLimit-Remaining: ", "X-RateLimit-Reset: "}, limits{}},
		"twice":                       {[]string{"X-RateLimit-Remaining: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772366460", "X-RateLimit-Reset: 1772366417"}, limits{true, true, 17 * time.Second}},
		"joined":                      {[]string{"X-RateLimit-Remaining: 0, 0", "X-RateLimit-Reset: 17 ,60"}, limits{true, true, time.Minute}},
		"of different lengths":        {[]string{"X-RateLimit-Remaining: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772366460"}, limits{}},
		"draft 11":                    {[]string{`RateLimit: "minute";r=0;t=17`}, limits{true, true, 17 * time.Second}},
		"draft 11, several":           {[]string{`RateLimit: "minute";r=0;t=17, "day";r=0;t=50400, "month";r=4;t=999999`}, limits{true, true, 50400 * time.Second}},
		"draft 11, several lines":     {[]string{`RateLimit: "minute";r=3;t=17`, `RateLimit: "day";r=0;t=50400`}, limits{true, true, 50400 * time.Second}},
		"draft 11, some left":         {[]string{`RateLimit: "minute";r=42;t=17`}, limits{present: true}},
		"draft 11, no window":         {[]string{`RateLimit: "minute";r=0`}, limits{present: true, empty: true}},
		"renamed":                     {[]string{`RateLimit: "minute";a=0;w=17, "day";r=0;t=5`}, limits{true, true, 17 * time.Second}},
		"renamed, some left":          {[]string{`RateLimit: "minute";a=42;w=17`}, limits{present: true}},
		"both names":                  {[]string{`RateLimit: "minute";a=1;w=99;r=0;t=17`}, limits{true, true, 17 * time.Second}},
		"both names, both 0":          {[]string{`RateLimit: "minute";a=0;w=99;r=0;t=17`}, limits{true, true, 17 * time.Second}},
		"draft 6":                     {[]string{"RateLimit-Limit: 10", "RateLimit-Remaining: 0", "RateLimit-Reset: 17"}, limits{true, true, 17 * time.Second}},
		"draft 7 is another syntax":   {[]string{"RateLimit: limit=10, remaining=0, reset=17"}, limits{}},
		"the draft and X-RateLimit":   {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1772366417", `RateLimit: "minute";r=0;t=17, "day";r=0;t=99`}, limits{true, true, 99 * time.Second}},
		"a malformed one is no limit": {[]string{"X-RateLimit-Remaining: x", "X-RateLimit-Reset: 17", `RateLimit: "minute";r=0;t=17`}, limits{true, true, 17 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readLimits(header(test.header...), noon); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestParseRateLimit(t *testing.T) {
	none, minute := limits{}, limits{true, true, 17 * time.Second}
	for field, want := range map[string]limits{
		`"a";r=0;t=17`:                              minute,
		`  "a" ;r=0;t=17`:                           none, // no space before a semicolon
		`  "a"; r=0;  t=17 `:                        minute,
		`"a;r=1;t=2";r=0;t=17`:                      minute, // a name that looks like parameters
		`"a\"b\\";r=0;t=17`:                         minute,
		`"a\b";r=0;t=17`:                            none, // no such escape
		`"a;r=0;t=17`:                               none, // no closing quote
		`"ä";r=0;t=17`:                              none, // not ASCII
		`"a";r=0;t=17;pk=:c2VjcmV0:`:                minute,
		`"a";pk="; r=9";x=%"r=9;%c3%a4";r=0;t=17`:   minute,
		`"a";b;r=0;c=?1;t=17;d=@-5;e=tok/en;f=-1.5`: minute,
		`"a";r=9;r=0;t=17`:                          minute, // the last counts
		`"a";r=0;t=17;r`:                            none,   // which is a Boolean here
		`"a";r=0.0;t=17`:                            none,
		`"a";r=0.5;t=17, "b";r=0;t=17`:              minute,
		`1.5, "b";r=0;t=17`:                         minute,
		`"a";r=-1;t=17`:                             none,
		`"a";r="0";t=17`:                            none,
		`"a";r=0;t=-17`:                             {present: true, empty: true},
		`"a";r=1000000000000000;t=17`:               none, // 16 digits
		`"a";r=999999999999999;t=17`:                {present: true},
		`"a";r=0;t=999999999999999`:                 {true, true, longest},
		`"a";R=0;t=17`:                              none, // keys are lower case
		`"a";t=17`:                                  none,
		`a;r=0;t=17`:                                none, // a Token
		`a;r=0;t=1, "b";r=0;t=17`:                   minute,
		`("a";r=0;t=1 "b");r=0;t=1, "b";r=0;t=17`:   minute,
		`(), "b";r=0;t=17`:                          minute,
		`"b";r=0;t=17,`:                             none, // nothing after the comma
		`"b";r=0;t=17,,"b";r=0;t=17`:                none,
		`"b";r=0;t=17 "b";r=0;t=17`:                 none,
		"\"b\";r=0;t=17\t,\t\"b\";r=0;t=17":         minute,
		``:                                          none,
		`"a";r=0;t=17` + strings.Repeat(" ", maxFieldBytes): none,
	} {
		if got := readLimits(http.Header{"Ratelimit": {field}}, noon); got != want {
			t.Errorf("%.60s is read as %+v, want %+v", field, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for name, test := range map[string]struct {
		values []string
		want   time.Duration
		ok     bool
	}{
		"none":                  {nil, 0, false},
		"seconds":               {[]string{"17"}, 17 * time.Second, true},
		"zero":                  {[]string{"0"}, 0, true},
		"white space":           {[]string{"\t17 "}, 17 * time.Second, true},
		"a date":                {[]string{"Sun, 01 Mar 2026 12:00:17 GMT"}, 17 * time.Second, true},
		"a date of RFC 850":     {[]string{"Sunday, 01-Mar-26 12:00:17 GMT"}, 17 * time.Second, true},
		"a date of ANSI C":      {[]string{"Sun Mar  1 12:00:17 2026"}, 17 * time.Second, true},
		"a date in the past":    {[]string{"Sun, 01 Mar 2026 11:00:00 GMT"}, 0, true},
		"a date far ahead":      {[]string{"Fri, 31 Dec 9999 23:59:59 GMT"}, longest, true},
		"huge":                  {[]string{"99999999999999999999999999"}, longest, true},
		"negative":              {[]string{"-1"}, 0, false},
		"a fraction":            {[]string{"1.5"}, 0, false},
		"a unit":                {[]string{"17s"}, 0, false},
		"empty":                 {[]string{""}, 0, false},
		"other digits":          {[]string{"٥"}, 0, false},
		"two, of which one bad": {[]string{"soon", "17"}, 17 * time.Second, true},
		"two, the longer first": {[]string{"60", "17"}, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Retry-After": test.values}
			if got, ok := retryAfter(h, noon); got != test.want || ok != test.ok {
				t.Errorf("retryAfter(%q) = %v, %v; want %v, %v", test.values, got, ok, test.want, test.ok)
			}
		})
	}
}

func FuzzFields(f *testing.F) {
	f.Add(`"minute";r=0;t=17, "day";r=4711;t=50400`, "0", "1772366417", "17", "Sun, 01 Mar 2026 12:00:00 GMT")
	f.Add(`(a "b";r=0);r=1, :YQ==:;x=%"%c3%a4", ?1, @5, -1.5`, "0,1", "17,1772366417", "Sun, 01 Mar 2026 12:00:17 GMT", "")
	f.Fuzz(func(t *testing.T, field, remaining, reset, after, date string) {
		h := http.Header{"Ratelimit": {field}, "X-Ratelimit-Remaining": {remaining}, "X-Ratelimit-Reset": {reset}, "Retry-After": {after}, "Date": {date}}
		server := serverTime(h, noon)
		if wait, ok := retryAfter(h, server); wait < 0 || wait > longest || !ok && wait != 0 {
			t.Errorf("Retry-After %q at %v is read as %v, %v", after, server, wait, ok)
		}
		l := readLimits(h, server)
		if l.reset < 0 || l.reset > longest || l.reset > 0 && !l.empty || l.empty && !l.present {
			t.Errorf("%v at %v is read as %+v", h, server, l)
		}
		// A member more, which is well-formed, is read if the others are.
		one, two := http.Header{"Ratelimit": {field}}, http.Header{"Ratelimit": {field, `"fuzz";r=0;t=17`}}
		if more := readLimits(two, server); readLimits(one, server).present && len(field) < maxFieldBytes-20 && more.reset < 17*time.Second {
			t.Errorf("%q and a member more is read as %+v", field, more)
		}
	})
}
