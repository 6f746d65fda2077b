// Package monitoring holds what an operator needs to watch the server with Prometheus
// and Grafana: alert rules, their tests, and a dashboard. README.md says how to set
// them up.
//
// Its tests hold the rules, the dashboard and the operating guide, docs/OPERATING.md,
// together. This renews the dashboard:
//
//	go generate ./reference/monitoring
package monitoring

//go:generate go test -count 1 -run TestDashboard$ . -update
