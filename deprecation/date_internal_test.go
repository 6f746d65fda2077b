package deprecation

import (
	"testing"
	"time"
)

// A year of two digits is the last such year that is not more than fifty years
// ahead (RFC 9110 section 5.6.7).
func TestYearsOfTwoDigits(t *testing.T) {
	for _, tt := range []struct {
		now   time.Time
		value string
		want  int // year
	}{
		{day(2026, 11, 20), "Thursday, 05-Dec-30 00:00:00 GMT", 2030},
		{day(2026, 11, 20), "Thursday, 05-Dec-69 00:00:00 GMT", 2069},
		{day(2026, 11, 20), "Friday, 20-Nov-76 00:00:00 GMT", 2076},
		{day(2026, 11, 20), "Friday, 20-Nov-76 00:00:01 GMT", 1976},
		{day(2026, 11, 20), "Sunday, 06-Nov-94 08:49:37 GMT", 1994},
		{day(2026, 11, 20), "Friday, 20-Nov-26 00:00:00 GMT", 2026},
		{day(2026, 11, 20), "Friday, 20-Nov-25 00:00:00 GMT", 2025},
		{day(2026, 11, 20), "Tuesday, 29-Feb-00 00:00:00 GMT", 2000},
		{day(2099, 1, 1), "Monday, 05-Dec-05 00:00:00 GMT", 2105},
		{day(2049, 12, 31), "Friday, 31-Dec-99 00:00:00 GMT", 2099},
		{day(2049, 12, 31), "Friday, 01-Jan-00 00:00:00 GMT", 2000},
	} {
		got, err := parseHTTPDate(tt.value, tt.now)
		if err != nil || got.Year() != tt.want {
			t.Errorf("at %v, %q is %v, %v, want the year %d", tt.now.Format(time.DateOnly), tt.value, got, err, tt.want)
		}
	}
	if got, err := parseHTTPDate("Monday, 29-Feb-00 00:00:00 GMT", day(2090, 1, 1)); err == nil {
		t.Errorf("29 February of 2100 is read as %v, a day that the year does not have", got)
	}
}

func day(year, month, day int) time.Time {
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}
