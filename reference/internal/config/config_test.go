package config

import "testing"

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

func TestUnknownOperations(t *testing.T) {
	c := mustLoad(t, "stability: {getPets: beta, getPet: beta}\ndeprecations:\n  getPet: {since: 2025-12-05}\n  listPets: {since: 2025-12-05}\n")
	want := "petstore.yaml:1:22: stability.getPets: unknown operation; the operations are getPet, listPets\n" +
		"petstore.yaml:4:13: deprecations.listPets: unknown operation; the operations that can be deprecated are getPet"
	if got := errorText(c.CheckOperations([]string{"getPet"}, []string{"getPet", "listPets"})); got != want {
		t.Errorf("CheckOperations = %q, want %q", got, want)
	}
	if err := c.CheckOperations([]string{"getPet", "listPets"}, []string{"getPet", "getPets"}); err != nil {
		t.Errorf("CheckOperations with all known = %v", err)
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
			if plan.Fixed == nil {
				quotas = []string{"5/minute"}
			}
			p, err := c.Plans.Of(plan.Name, quotas)
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
