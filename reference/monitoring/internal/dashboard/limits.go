package dashboard

const (
	plan      = "gatehouse_plan"
	result    = "gatehouse_result"
	window    = "gatehouse_window"
	operation = "gatehouse_operation"

	decisions = "gatehouse_rate_limiting_requests_total"
	denied    = result + `=~"limited|banned"`
)

func limitRows() []row {
	return []row{
		{"Limits", []panel{
			{
				title: "Decisions", unit: "reqps", width: 12, stack: true, coloured: true,
				description: "What the limiter decided. An undecided request is answered with 503.",
				queries:     []query{{sum(result, rate(decisions)), "{{gatehouse_result}}"}},
			},
			{
				title: "Requests by plan", unit: "reqps", width: 12, stack: true,
				description: "Requests per second that were counted for each plan. anonymous is the plan of callers without a valid key.",
				queries:     []query{{sum(plan, rate(decisions)), "{{gatehouse_plan}}"}},
			},
			{
				title: "Denied by plan", unit: "percentunit", width: 12, most: 1,
				description: "Share of the requests of each plan that were limited or banned.",
				queries:     []query{{sum(plan, rate(decisions, denied)) + " / " + sum(plan, rate(decisions)), "{{gatehouse_plan}}"}},
			},
			{
				title: "Denied by quota", unit: "reqps", width: 12, stack: true,
				description: "Requests per second that were limited, by the window of the quota that denied them. Many under day mean that a plan is too small for its callers.",
				queries:     []query{{sum(plan+", "+window, rate(decisions, result+`="limited"`)), "{{gatehouse_plan}} per {{gatehouse_window}}"}},
			},
			{
				title: "Near the limit", unit: "reqps", width: 8,
				description: "Admitted requests per second after which at most 10 % of the quota was left. Their callers are about to be limited.",
				queries:     []query{{sum(plan+", "+window, rate("gatehouse_rate_limiting_near_limit_total")), "{{gatehouse_plan}} per {{gatehouse_window}}"}},
			},
			{
				title: "Strikes and bans", unit: count, width: 8,
				description: "Strikes, bans started and bans ended by an operator, each in the last 15 minutes. PetstoreManyBans fires above 20 bans.",
				queries: []query{
					{sum(plan, "increase("+of("gatehouse_rate_limiting_strikes_total")+"[15m])"), "strikes, {{gatehouse_plan}}"},
					{sum(plan, "increase("+of("gatehouse_bans_started_total")+"[15m])"), "bans, {{gatehouse_plan}}"},
					{sum("", "increase("+of("gatehouse_bans_unbanned_total")+"[15m])"), "unbanned"},
				},
			},
			{
				title: "Bans in force", unit: count, width: 8,
				description: "The number of owners and networks that are banned now. Servers that share Redis show the same number.",
				queries:     []query{{of("gatehouse_bans_active"), "{{instance}}"}},
			},
		}},
		{"Keys and deprecated operations", []panel{
			{
				title: "Authentication", unit: "reqps", width: 12, stack: true, coloured: true,
				description: "What was found in the Authorization field. invalid: malformed, unknown, expired or revoked. unavailable: the database could not be asked, or the client cancelled the request meanwhile. PetstoreManyWrongKeys fires at 5 invalid per second.",
				queries:     []query{{sum(result, rate("gatehouse_authentication_requests_total")), "{{gatehouse_result}}"}},
			},
			{
				title: "Calls of deprecated operations", unit: count, width: 8,
				description: "Calls in the last day. petstore deprecations names the owners that still make them.",
				queries:     []query{{sum(operation, "increase("+of("gatehouse_deprecation_requests_total")+"[1d])"), "{{gatehouse_operation}}"}},
			},
			{
				title: "Until the sunset", unit: "s", stat: true, width: 4, warning: 90 * 24 * 3600, critical: 30 * 24 * 3600, low: true, none: "no sunset",
				description: "How long deprecated operations still work. After that they are answered with 410.",
				queries:     []query{{"min by (" + operation + ") (" + of("petstore_deprecation_sunset_timestamp_seconds") + ") - time()", "{{gatehouse_operation}}"}},
			},
		}},
	}
}
