// Package monitoring holds what an operator needs to watch the server with Prometheus
// and Grafana: alert rules, their tests, a dashboard, and the list of all metrics.
// README.md says how to set them up.
//
// Its tests hold the rules, the dashboard and the page of alerts, reference/docs/ALERTS.md,
// together. They run servers, and compare every metric, label and value that the rules
// and the dashboard ask for with what the servers expose. This renews the list of metrics:
//
//	go generate ./reference/monitoring
package monitoring

//go:generate go test -count 1 -run TestMetrics . -update
