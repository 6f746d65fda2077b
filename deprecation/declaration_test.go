package deprecation_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

func TestNewRefuses(t *testing.T) {
	at := sunset.Add
	brownouts := func(all ...deprecation.Brownout) deprecation.Options {
		return deprecation.Options{Since: since, Sunset: sunset, Brownouts: all}
	}
	link := func(target string) deprecation.Options {
		return deprecation.Options{Since: since, Successor: target}
	}
	for _, tt := range []struct {
		name    string
		options deprecation.Options
		want    string
	}{
		{"no instant", deprecation.Options{Successor: "/v2"}, "deprecation: Options.Since or Options.Sunset must be set"},
		{
			"since a clock", deprecation.Options{Since: since.Add(1)},
			"deprecation: Options.Since must be a whole second in the years 1 to 9999, got 2025-12-05T00:00:00.000000001Z",
		},
		{
			"year", deprecation.Options{Since: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
			"deprecation: Options.Since must be a whole second in the years 1 to 9999, got 10000-01-01T00:00:00Z",
		},
		{
			"sunset before the deprecation", deprecation.Options{Since: since, Sunset: since.Add(-time.Second)},
			"deprecation: Options.Sunset must not be before Options.Since (2025-12-05T00:00:00Z), got 2025-12-04T23:59:59Z",
		},
		{
			"sunset of a clock", deprecation.Options{Since: since, Sunset: sunset.Add(time.Millisecond)},
			"deprecation: Options.Sunset must be a whole second in the years 1 to 9999, got 2030-12-05T00:00:00.001Z",
		},
		{
			"URI template", link("/v1/pets{?status}"),
			`deprecation: Options.Successor must be an absolute URL or an absolute path, got "/v1/pets{?status}": it has the character '{', which must be percent-encoded`,
		},
		{
			"space", deprecation.Options{Since: since, Documentation: "https://docs.example/get pet"},
			`deprecation: Options.Documentation must be an absolute URL or an absolute path, got "https://docs.example/get pet": it has the character ' ', which must be percent-encoded`,
		},
		{"relative path", link("pets"), `deprecation: Options.Successor must be an absolute URL or an absolute path, got "pets": it is relative`},
		{
			"half a percent sequence", link("/v1/pets?q=%7"),
			`deprecation: Options.Successor must be an absolute URL or an absolute path, got "/v1/pets?q=%7": invalid URL escape "%7"`,
		},
		{
			"relative path with a colon", link("pets?at=12:00"),
			`deprecation: Options.Successor must be an absolute URL or an absolute path, got "pets?at=12:00": it is relative`,
		},
		{
			"query alone", deprecation.Options{Since: since, SunsetInfo: "?status=available"},
			`deprecation: Options.SunsetInfo must be an absolute URL or an absolute path, got "?status=available": it is relative`,
		},
		{
			"brownout without sunset", deprecation.Options{Since: since, Brownouts: []deprecation.Brownout{{Start: since, End: sunset}}},
			"deprecation: Options.Brownouts[0] needs Options.Sunset, which is not set",
		},
		{"brownout without start", brownouts(deprecation.Brownout{End: at(-time.Hour)}), "deprecation: Options.Brownouts[0].Start must be set"},
		{"brownout without end", brownouts(deprecation.Brownout{Start: at(-time.Hour)}), "deprecation: Options.Brownouts[0].End must be set"},
		{
			"empty brownout", brownouts(deprecation.Brownout{Start: at(-2), End: at(-1)}, deprecation.Brownout{Start: at(-time.Second), End: at(-time.Second)}),
			"deprecation: Options.Brownouts[1].End must be after the start (2030-12-04T23:59:59Z), got 2030-12-04T23:59:59Z",
		},
		{
			"brownout before the deprecation", brownouts(deprecation.Brownout{Start: since.Add(-time.Second), End: at(-1)}),
			"deprecation: Options.Brownouts[0].Start must not be before Options.Since (2025-12-05T00:00:00Z), got 2025-12-04T23:59:59Z",
		},
		{
			"brownout up to the sunset", brownouts(deprecation.Brownout{Start: at(-2), End: sunset}),
			"deprecation: Options.Brownouts[0].End must be before Options.Sunset (2030-12-05T00:00:00Z), got 2030-12-05T00:00:00Z",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := deprecation.New(tt.options)
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
		options.Since = since
		if _, err := deprecation.New(options); err != nil {
			t.Errorf("%s: New: %v", name, err)
		}
	}
}

func TestMustNewPanics(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); err == nil {
			t.Errorf("MustNew did not panic with the error of New")
		}
	}()
	deprecation.MustNew(deprecation.Options{})
}
