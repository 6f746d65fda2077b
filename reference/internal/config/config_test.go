package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

func TestPlanOfAKey(t *testing.T) {
	c := mustLoad(t, "plans: {free: [60/minute], paid: [10000/month from 17 in Europe/Berlin], enterprise: custom, unpaid: suspended, internal: unlimited}")
	for _, tt := range []struct {
		plan   string
		quotas []string
		want   string // the plan, or the error
	}{
		{"free", nil, "free [60/minute]"},
		{"paid", nil, "paid [10000/month from 17 in Europe/Berlin]"},
		{"enterprise", []string{"1000000/day", "5000/minute"}, "enterprise [5000/minute 1000000/day]"},
		{"free", []string{"1/day"}, "plan free has fixed quotas; remove the quotas of the key"},
		{"enterprise", nil, "plan enterprise is custom; give the key quotas such as 5000/minute"},
		{"enterprise", []string{"5000"}, `quota "5000": …`},
		{"enterprise", []string{"1/minute", "2/60s"}, `plan "enterprise": quota 2: …`},
		{"unpaid", nil, "unpaid suspended"},
		{"internal", nil, "internal unlimited"},
		{"internal", []string{"1/day"}, "plan internal has fixed quotas; remove the quotas of the key"},
		{"gold", nil, `unknown plan "gold"; the plans are free, paid, enterprise, unpaid, internal`},
		{"anonymous", nil, `unknown plan "anonymous"; the plans are free, paid, enterprise, unpaid, internal`},
		{"", nil, `unknown plan ""; the plans are free, paid, enterprise, unpaid, internal`},
	} {
		plan, err := c.Plans.Of(tt.plan, tt.quotas)
		got := errorText(err)
		if err == nil {
			got = plan.String()
		}
		if !matches(tt.want, got) {
			t.Errorf("Of(%q, %q) = %s, want %s", tt.plan, tt.quotas, got, tt.want)
		}
	}
}

func TestWhereASettingWasGiven(t *testing.T) {
	c := mustLoad(t, "plans:\n  free: [1/minute,\n         2/day]\npenalty:\n  strikes: 3\n")
	for setting, want := range map[string]string{
		"plans":               "petstore.yaml:2:3",
		"plans.free":          "petstore.yaml:2:9",
		"plans.free[1]":       "petstore.yaml:3:10",
		"plans.free[7]":       "petstore.yaml:2:9",
		"plans.pro":           "petstore.yaml:2:3",
		"penalty.strikes":     "petstore.yaml:5:12",
		"penalty.ban":         "petstore.yaml:5:3",
		"listen":              "default",
		"deprecations.getPet": "default",
	} {
		if got := c.Where(setting); got != want {
			t.Errorf("Where(%q) = %s, want %s", setting, got, want)
		}
	}
}

func TestDeprecationOfAnUnknownOperation(t *testing.T) {
	c := mustLoad(t, "deprecations:\n  getPet: {since: 2025-12-05}\n  getPets: {since: 2025-12-05}\n")
	want := "petstore.yaml:3:12: deprecations.getPets: unknown operation; the operations that can be deprecated are listPets, getPet"
	if got := errorText(c.CheckOperations("listPets", "getPet")); got != want {
		t.Errorf("CheckOperations = %q, want %q", got, want)
	}
	if err := c.CheckOperations("getPet", "getPets"); err != nil {
		t.Errorf("CheckOperations with all known = %v", err)
	}
}

func TestSecretDoesNotShow(t *testing.T) {
	c := mustLoad(t, "admin_token: 0123456789abcdef")
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", c.AdminToken)
		fmt.Fprintf(&out, verb+"\n", *c)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "token", c.AdminToken, "config", *c)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "token", c.AdminToken, "config", *c)
	must(t, json.NewEncoder(&out).Encode(struct{ Token Secret }{c.AdminToken}))
	if strings.Contains(out.String(), "0123456789abcdef") || strings.Contains(out.String(), fmt.Sprintf("%x", "0123456789")) {
		t.Errorf("the token shows in\n%s", out.String())
	}
	if c.AdminToken.Reveal() != "0123456789abcdef" {
		t.Errorf("Reveal = %q", c.AdminToken.Reveal())
	}
	if got := fmt.Sprint(Secret("")); got != "" {
		t.Errorf("no token shows as %q, want nothing", got)
	}
}

func TestFlagsForKong(t *testing.T) {
	type command struct {
		Flags `embed:""`
	}
	parse := func(args ...string) Flags {
		t.Helper()
		var c command
		k, err := kong.New(&c)
		must(t, err)
		if _, err := k.Parse(args); err != nil {
			t.Fatal(err)
		}
		return c.Flags
	}
	if diff := cmp.Diff(Flags{}, parse()); diff != "" {
		t.Errorf("flags that were not given (-want +got):\n%s", diff)
	}
	args := []string{"--config=file"}
	for _, s := range settings {
		if s.hasFlag() {
			args = append(args, flagName(s.name)+"="+s.name)
		}
	}
	flags := parse(args...)
	if flags.Config == nil || *flags.Config != "file" {
		t.Errorf("--config=file is read as %v", flags.Config)
	}
	for _, s := range settings {
		if got, ok := flags.lookup(s.name); ok && (got == nil || *got != s.name) {
			t.Errorf("the flag %s is read as %v", flagName(s.name), got)
		}
	}

	var help bytes.Buffer
	k, err := kong.New(&command{}, kong.Writers(&help, &help), kong.Exit(func(int) {}))
	must(t, err)
	k.Parse([]string{"--help"})
	for _, o := range settings {
		if !o.hasFlag() {
			continue
		}
		if !strings.Contains(help.String(), flagName(o.name)+"=") || !strings.Contains(help.String(), "$"+variable(o.name)) {
			t.Errorf("the help does not name %s and $%s:\n%s", flagName(o.name), variable(o.name), help.String())
		}
	}
}

// The penalty of the file is that of all plans, wherever it stands, and also of the plans
// that the file leaves as they are.
func TestPenaltyReachesAllPlans(t *testing.T) {
	for _, tt := range []struct {
		file    string
		strikes int
	}{
		{"penalty: {strikes: 3}\nplans: {a: [1/day], b: custom}\nanonymous: [1/day]\n", 3},
		{"plans: {a: [1/day], b: custom}\nanonymous: [1/day]\npenalty: {strikes: 3}\n", 3},
		{"penalty: {strikes: 3}", 3},
		{"penalty: {strikes: 0}", 0},
	} {
		c := mustLoad(t, tt.file)
		for _, plan := range c.Plans {
			var quotas []string
			if plan.Custom() {
				quotas = []string{"5/minute"}
			}
			p, err := c.Plans.Of(plan.Name(), quotas)
			must(t, err)
			if got := p.Penalty().Strikes; got != tt.strikes {
				t.Errorf("%s: plan %s allows %d strikes, want %d", tt.file, p.Name(), got, tt.strikes)
			}
		}
		if got := c.Anonymous.Penalty().Strikes; got != tt.strikes {
			t.Errorf("%s: callers without a key have %d strikes, want %d", tt.file, got, tt.strikes)
		}
	}
}
