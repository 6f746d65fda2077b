// Package deploy has the files with which the pets server is deployed, and the tests that
// hold them against the server: its settings, its endpoints, and the alert rules.
//
//	compose/      the server with PostgreSQL, Redis, Prometheus and Grafana on one machine
//	kubernetes/   replicas on PostgreSQL and Redis that run elsewhere
//	systemd/      a unit
//
// The Dockerfile and .goreleaser.yaml are at the root of the repository. reference/docs/DEPLOYING.md
// says how to use all of them. The tests that need the types of Kubernetes, the schema of
// Compose files or the patterns of Docker run with -tags long.
package deploy
