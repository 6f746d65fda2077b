// Package monitoring holds what an operator needs to watch the server with Prometheus
// and Grafana: alert rules, their tests and a dashboard. README.md says how to set them up.
//
// The tests of package reference compare the rules, the dashboard and the page of alerts,
// reference/docs/ALERTS.md, with each other. They run servers, and check that these expose
// every metric, label and value that the rules and the dashboard ask for.
package monitoring
