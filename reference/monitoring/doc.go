// Package monitoring holds what an operator needs to watch the server with Prometheus
// and Grafana: alert rules, their tests and a dashboard. README.md says how to set them up.
//
// The tests of package reference hold the rules, the dashboard and the page of alerts,
// reference/docs/ALERTS.md, together. They run servers, and compare every metric, label and value that the rules
// and the dashboard ask for with what the servers expose.
package monitoring
