package deprecation_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

func TestNewRefuses(t *testing.T) {
	at := func(d time.Duration) time.Time { return sunset.Add(d) }
	for _, tt := range []struct {
		name    string
		since   time.Time
		options deprecation.Options
		want    string
	}{
		{"no instant", time.Time{}, deprecation.Options{}, "deprecation: since: is not set"},
		{"clock", since.Add(1), deprecation.Options{}, "deprecation: since: is not a whole second"},
		{"year", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), deprecation.Options{}, "deprecation: since: is not in the years 1 to 9999"},
		{"sunset before the deprecation", since, deprecation.Options{Sunset: since.Add(-time.Second)}, "deprecation: Options.Sunset: is before the deprecation"},
		{"sunset of a clock", since, deprecation.Options{Sunset: sunset.Add(time.Millisecond)}, "deprecation: Options.Sunset: is not a whole second"},
		{"year of the sunset", since, deprecation.Options{Sunset: time.Date(12030, 12, 5, 0, 0, 0, 0, time.UTC)}, "deprecation: Options.Sunset: is not in the years 1 to 9999"},
		{"URI template", since, deprecation.Options{Successor: "/v1/pets{?status}"}, "deprecation: Options.Successor: is a URI template, not a URI reference"},
		{"space", since, deprecation.Options{Documentation: "https://docs.example/get pet"}, "deprecation: Options.Documentation: has a space that is not percent-encoded"},
		{"relative path", since, deprecation.Options{Successor: "pets"}, "deprecation: Options.Successor: is neither an absolute URL nor an absolute path"},
		{"relative path with a colon", since, deprecation.Options{Successor: "pets?at=12:00"}, "deprecation: Options.Successor: is neither an absolute URL nor an absolute path"},
		{"query alone", since, deprecation.Options{SunsetInfo: "?status=available"}, "deprecation: Options.SunsetInfo: is neither an absolute URL nor an absolute path"},
		{
			"brownout without sunset", since,
			deprecation.Options{Brownouts: []deprecation.Brownout{{Start: since, End: sunset}}},
			"deprecation: Options.Brownouts[0]: there is no sunset to prepare for",
		},
		{
			"brownout without end", since,
			deprecation.Options{Sunset: sunset, Brownouts: []deprecation.Brownout{{Start: at(-time.Hour)}}},
			"deprecation: Options.Brownouts[0]: the start or the end is not set",
		},
		{
			"empty brownout", since,
			deprecation.Options{Sunset: sunset, Brownouts: []deprecation.Brownout{{at(-2), at(-1)}, {at(-9), at(-9)}}},
			"deprecation: Options.Brownouts[1]: the start is not before the end",
		},
		{
			"brownout before the deprecation", since,
			deprecation.Options{Sunset: sunset, Brownouts: []deprecation.Brownout{{since.Add(-1), at(-1)}}},
			"deprecation: Options.Brownouts[0]: the start is before the deprecation",
		},
		{
			"brownout up to the sunset", since,
			deprecation.Options{Sunset: sunset, Brownouts: []deprecation.Brownout{{at(-2), sunset}}},
			"deprecation: Options.Brownouts[0]: the end is not before the sunset",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := deprecation.New(tt.since, tt.options)
			if err == nil || err.Error() != tt.want {
				t.Errorf("New: got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNewAccepts(t *testing.T) {
	for name, options := range map[string]deprecation.Options{
		"nothing else":         {},
		"sunset at once":       {Sunset: since},
		"absolute URL":         {Documentation: "https://docs.example/deprecations/get-pet#why"},
		"other scheme":         {SunsetInfo: "mailto:api@example.com"},
		"host without scheme":  {Successor: "//api.example/v2/pets"},
		"percent-encoded":      {Successor: "/v1/pets?q=%7Bx%7D"},
		"path with a colon":    {Successor: "/v1/pets:find"},
		"brownouts in a heap":  {Sunset: sunset, Brownouts: []deprecation.Brownout{{since, sunset.Add(-1)}, {since, since.Add(1)}}},
		"instant in the zone":  {Sunset: sunset.In(time.FixedZone("JST", 9*60*60))},
		"deprecation to come":  {Sunset: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)},
		"all links to a place": {Successor: "/", Documentation: "/", SunsetInfo: "/"},
	} {
		if _, err := deprecation.New(since, options); err != nil {
			t.Errorf("%s: New: %v", name, err)
		}
	}
}

func TestAccessors(t *testing.T) {
	tokyo := time.FixedZone("JST", 9*60*60)
	for _, tt := range []struct {
		name          string
		d             *deprecation.Declaration
		since, sunset time.Time
		date          string
	}{
		{"with sunset", deprecation.MustNew(since, deprecation.Options{Sunset: sunset}), since, sunset, "2030-12-05"},
		{"in another zone", deprecation.MustNew(since.In(tokyo), deprecation.Options{Sunset: sunset.In(tokyo)}), since, sunset, "2030-12-05"},
		{"end of the day", deprecation.MustNew(since, deprecation.Options{Sunset: sunset.Add(-time.Second).In(tokyo)}), since, sunset.Add(-time.Second), "2030-12-04"},
		{"without sunset", deprecation.MustNew(since, deprecation.Options{}), since, time.Time{}, ""},
		{"nil", nil, time.Time{}, time.Time{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.d.Since(); got != tt.since {
				t.Errorf("Since is %v, want %v", got, tt.since)
			}
			if got := tt.d.Sunset(); got != tt.sunset {
				t.Errorf("Sunset is %v, want %v", got, tt.sunset)
			}
			if got := tt.d.SunsetDate(); got != tt.date {
				t.Errorf("SunsetDate is %q, want %q", got, tt.date)
			}
		})
	}
}

func TestMustNewPanics(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); err == nil {
			t.Errorf("MustNew did not panic with the error of New")
		}
	}()
	deprecation.MustNew(time.Time{}, deprecation.Options{})
}
