package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"
)

// sameLine tests that jsonLines writes what the JSONHandler in it writes.
func sameLine(t *testing.T, r slog.Record) (line string) {
	t.Helper()
	var got, want bytes.Buffer
	if err := jsonHandler(&got, nil).Handle(t.Context(), r); err != nil {
		t.Error(err)
	}
	if err := jsonHandler(&want, nil).(jsonLines).Handler.Handle(t.Context(), r); err != nil {
		t.Error(err)
	}
	if got.String() != want.String() {
		t.Errorf("the line is\n%s\nwant that of slog.JSONHandler:\n%s", got.String(), want.String())
	}
	return got.String()
}

func TestLinesAreThoseOfTheJSONHandler(t *testing.T) {
	for _, at := range []time.Time{
		{}, time.Now(), time.Unix(0, 0), time.Unix(1, 5e8).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1, 1).In(time.FixedZone("", -3*3600-1800)),
	} {
		sameLine(t, slog.NewRecord(at, slog.LevelInfo, "request", 0))
	}
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo + 1, slog.LevelError, -100} {
		sameLine(t, slog.NewRecord(time.Now(), level, "request", 0))
	}
	for _, v := range []any{
		"", "text", `a "quoted" \`, `"`, `\`, "line\nfeed", "\x7f", "é", "\u2028", "\xff", "<&>",
		0, -1, int64(math.MinInt64), uint64(math.MaxUint64), true, false,
		0.0, math.Copysign(0, -1), 0.412, 1e-6, 9.9e-7, 1e20, 1e21, -1e21, 1.0 / 3, math.NaN(), math.Inf(1),
		nil, errors.New("an error"), time.Second, time.Now(), []string{"a"}, slog.GroupValue(slog.Int("b", 1)), slog.LevelWarn,
	} {
		r := slog.NewRecord(time.Now(), slog.LevelInfo, "request", 0)
		r.AddAttrs(slog.String("before", "b"), slog.Any("value", v), slog.Int("after", 1))
		sameLine(t, r)
	}
	for _, text := range []string{"", `"`, "a\nb", "é"} {
		r := slog.NewRecord(time.Now(), slog.LevelInfo, text, 0)
		r.AddAttrs(slog.Int("status", 200)) // which does not hide that the message needs the JSONHandler
		sameLine(t, r)
		r = slog.NewRecord(time.Now(), slog.LevelInfo, "request", 0)
		r.AddAttrs(slog.Int(text, 1), slog.Attr{})
		sameLine(t, r)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("request", "route", "GET /v1/pets", int64(200), 0.412)
	f.Add("request", `k"`, "\u2028\xff", int64(-1), math.Inf(-1))
	f.Fuzz(func(t *testing.T, message, key, text string, n int64, x float64) {
		r := slog.NewRecord(time.Unix(n>>8, n&0xff), slog.Level(n%16), message, 0)
		r.AddAttrs(slog.String(key, text), slog.Int64("n", n), slog.Float64("x", x), slog.Float64("ms", float64(n%1e9)/1000))
		sameLine(t, r)
	})
}

// The usual lines must not go to the JSONHandler.
func TestUsualLinesAreFast(t *testing.T) {
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "request", 0)
	r.AddAttrs(slog.String("request_id", "0123456789abcdef0123456789abcdef"), slog.String("route", "/v1/pets"),
		slog.Int("status", 200), slog.Float64("duration_ms", 0.412), slog.Bool("replayed", true), slog.Uint64("lines", 1),
		slog.Float64("smallest", 1e-6), slog.Float64("zero", 0), slog.String("all", " !#[]~"))
	if line, ok := appendRecord(nil, r); !ok {
		t.Errorf("the line needs the JSONHandler after %s", line)
	}
}
