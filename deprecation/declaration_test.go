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
	const (
		second = " must be a whole second in the years 1 to 9999, got "
		target = " must be an absolute URL or an absolute path, got "
	)
	for want, options := range map[string]deprecation.Options{
		"Since or Options.Sunset must be set":                                                      {Successor: "/v2"},
		"Since" + second + "2025-12-05T00:00:00.000000001Z":                                        {Since: since.Add(1)},
		"Since" + second + "10000-01-01T00:00:00Z":                                                 {Since: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"Sunset" + second + "10000-01-01T00:00:00Z":                                                {Sunset: time.Date(9999, 12, 31, 19, 0, 0, 0, time.FixedZone("EST", -5*3600))},
		"Sunset" + second + "2030-12-05T00:00:00.001Z":                                             {Since: since, Sunset: at(time.Millisecond)},
		"Sunset must not be before Options.Since (2025-12-05T00:00:00Z), got 2025-12-04T23:59:59Z": {Since: since, Sunset: since.Add(-time.Second)},

		"Successor" + target + `"/v1/pets{?status}": it has the character '{', which must be percent-encoded`:              link("/v1/pets{?status}"),
		"Documentation" + target + `"https://docs.example/a pet": it has the character ' ', which must be percent-encoded`: {Since: since, Documentation: "https://docs.example/a pet"},
		"Successor" + target + `"pets": it is relative`:                                                                    link("pets"),
		"Successor" + target + `"pets?at=12:00": it is relative`:                                                           link("pets?at=12:00"),
		"SunsetInfo" + target + `"?status=available": it is relative`:                                                      {Since: since, SunsetInfo: "?status=available"},
		"Successor" + target + `"/v1/pets?q=%7": invalid URL escape "%7"`:                                                  link("/v1/pets?q=%7"),

		"Brownouts[0] needs Options.Sunset, which is not set": {Since: since, Brownouts: []deprecation.Brownout{{Start: since, End: sunset}}},
		"Brownouts[0].Start must be set":                      brownouts(deprecation.Brownout{End: at(-time.Hour)}),
		"Brownouts[0].End must be set":                        brownouts(deprecation.Brownout{Start: at(-time.Hour)}),
		"Brownouts[1].End must be after the start (2030-12-04T23:59:59Z), got 2030-12-04T23:59:59Z": brownouts(
			deprecation.Brownout{Start: at(-2), End: at(-1)}, deprecation.Brownout{Start: at(-time.Second), End: at(-time.Second)}),
		"Brownouts[0].Start must not be before Options.Since (2025-12-05T00:00:00Z), got 2025-12-04T23:59:59Z": brownouts(
			deprecation.Brownout{Start: since.Add(-time.Second), End: at(-1)}),
		"Brownouts[0].End must be before Options.Sunset (2030-12-05T00:00:00Z), got 2030-12-05T00:00:00Z": brownouts(
			deprecation.Brownout{Start: at(-2), End: sunset}),
	} {
		if _, err := deprecation.New(options); err == nil || err.Error() != "deprecation: Options."+want {
			t.Errorf("New: got error %v, want %q", err, "deprecation: Options."+want)
		}
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
