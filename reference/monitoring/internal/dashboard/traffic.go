package dashboard

// requests is the histogram of the HTTP requests.
const requests = "http_server_request_duration_seconds"

const (
	status = "http_response_status_code"
	route  = "http_route"

	failed  = status + `=~"5.."`
	served  = status + `!~"401|403|429|499"` // neither denied nor cancelled by the client
	in500ms = `le="0.5"`
)

// failing is the share of requests that fail, and slow that of those that take more than
// 0.5 s, as in alerts.yaml.
var (
	failing = sum("", rate(requests+"_count", failed)) + " / " + sum("", rate(requests+"_count", served))
	slow    = "1 - " + sum("", rate(requests+"_bucket", in500ms, served)) + " / " + sum("", rate(requests+"_count", served)) + " >= 0" // not NaN
)

func trafficRows() []row {
	return []row{
		{"At a glance", []panel{
			{
				title: "Servers ready", unit: count, stat: true, width: 4, warning: 1, critical: 0.5, low: true, none: "none",
				description: "How many of the chosen servers answer /readyz with 200.",
				queries:     []query{{sum("", of("petstore_ready")), "ready"}},
			},
			{
				title: "Requests", unit: "reqps", stat: true, width: 4,
				description: "Requests per second, with any answer.",
				queries:     []query{{sum("", rate(requests+"_count")), "requests"}},
			},
			{
				title: "Failed", unit: "percentunit", stat: true, width: 4, warning: 0.005, critical: 0.02, none: "0 %",
				description: "Share of the requests that were answered with a 5xx. Answers with 401, 403 and 429, and requests that their clients cancelled (499), do not count as requests here. PetstoreErrors fires at 2 %.",
				queries:     []query{{failing, "failed"}},
			},
			{
				title: "Slower than 0.5 s", unit: "percentunit", stat: true, width: 4, warning: 0.005, critical: 0.01, none: "0 %",
				description: "Share of the requests that took more than 0.5 s. Answers with 401, 403 and 429, and requests that their clients cancelled (499), do not count as requests here. PetstoreSlow fires at 1 %.",
				queries:     []query{{slow, "slow"}},
			},
			{
				title: "Banned now", unit: count, stat: true, width: 4,
				description: "Servers that share Redis share their bans, so this is the number of the server that knows most. petstore bans list shows them.",
				queries:     []query{{"max(" + of("gatehouse_bans_active") + ")", "bans"}},
			},
			{
				title: "Alerts firing", unit: count, stat: true, width: 4, critical: 1, none: "0",
				description: "Alerts of reference/monitoring/alerts.yaml that are firing for this job.",
				queries:     []query{{`count(ALERTS{job="$job", alertstate="firing"})`, "alerts"}},
			},
		}},
		{"Traffic", []panel{
			{
				title: "Requests by status", unit: "reqps", width: 12, stack: true, coloured: true,
				description: "Requests per second. 4xx is without 429, which has a line of its own, and with 499, for requests that their clients cancelled.",
				queries: []query{
					{sum("", rate(requests+"_count", status+`=~"2.."`)), "2xx"},
					{sum("", rate(requests+"_count", status+`=~"3.."`)), "3xx"},
					{sum("", rate(requests+"_count", status+`=~"4..", `+status+`!="429"`)), "4xx"},
					{sum("", rate(requests+"_count", status+`="429"`)), "429"},
					{sum("", rate(requests+"_count", failed)), "5xx"},
				},
			},
			{
				title: "Failed requests", unit: "percentunit", width: 12, critical: 0.02,
				description: "Share of the requests that were answered with a 5xx, by server. Answers with 401, 403 and 429, and requests that their clients cancelled (499), do not count as requests here. At the dashed line PetstoreErrors fires.",
				// A server has no series of a 5xx until a request fails. Without 0 in its place,
				// the panel of a healthy server would say "No data", like that of a lost one.
				queries: []query{{"(" + sum("instance", rate(requests+"_count", failed)) + " or 0 * " + sum("instance", rate(requests+"_count")) + ") / " +
					sum("instance", rate(requests+"_count", served)), "{{instance}}"}},
			},
			{
				title: "Requests by route", unit: "reqps", width: 12, stack: true,
				description: "Requests per second for each route and method. Requests that match no route have none.",
				queries:     []query{{sum("http_request_method, "+route, rate(requests+"_count")), "{{http_request_method}} {{http_route}}"}},
			},
			{
				title: "Requests by server", unit: "reqps", width: 12, stack: true,
				description: "Requests per second that each server answers. Unequal shares point to the load balancer.",
				queries:     []query{{sum("instance", rate(requests+"_count")), "{{instance}}"}},
			},
		}},
		{"Latency", []panel{
			{
				title: "Median by route", unit: "s", width: 12,
				description: "Half of the requests took at most this long. Answers with 401, 403, 429 and 499 are left out, because they are faster than the rest.",
				queries:     []query{{quantile("0.5", route, requests, served), "{{http_route}}"}},
			},
			{
				title: "99th percentile by route", unit: "s", width: 12, critical: 0.5,
				description: "99 in 100 requests took at most this long. Answers with 401, 403, 429 and 499 are left out. Above the dashed line for all routes together, PetstoreSlow fires.",
				queries:     []query{{quantile("0.99", route, requests, served), "{{http_route}}"}},
			},
		}},
	}
}
