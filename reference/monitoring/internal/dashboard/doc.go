// Package dashboard makes the Grafana dashboard of the server, which is
// reference/monitoring/dashboard.json.
//
//	data, err := dashboard.JSON()
//
// To change the dashboard, change the panels in this package and run go generate in
// reference/monitoring. A file in Go says in one line what takes sixty lines of JSON,
// and gives every panel the same look.
package dashboard
