package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/console"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// openConsole makes the console of the admin listener.
func (s *state) openConsole(o Options, p *startup) (err error) {
	s.audited = admin.Audited(s.limiter, s.store, o.Logger, time.Now)
	engines := []ratelimit.Limiter{s.embedded}
	if s.shared != nil {
		engines = append(engines, s.shared.Limiter)
		if s.shared.shares != nil {
			engines = append(engines, s.shared.shares)
		}
	}
	s.console, err = console.New(s.audited, console.Options{
		Title: "petstore", Engines: engines,
		Facts:        func(ctx context.Context) map[string]any { return p.facts(ctx, o) },
		Deprecations: p.deprecations,
	})
	return err
}

// facts are what the console shows of the server, beside what it has counted.
func (p *startup) facts(ctx context.Context, o Options) map[string]any {
	facts := map[string]any{"version": o.Build.Version}
	for _, check := range p.health {
		facts["check: "+check.Name] = "ok"
		if err := check.Run(ctx); err != nil {
			facts["check: "+check.Name] = err.Error()
		}
	}
	r := p.running.Load()
	if r == nil {
		return facts
	}
	for name, server := range map[string]*httpserver.Server{"api": r.pets, "admin": p.operator} {
		n := server.Stats()
		facts["connections: "+name] = fmt.Sprintf("%d open, %d idle, %d refused", n.Open, n.Idle, n.Refused)
	}
	status := r.reloads.Status()
	facts["settings"] = fmt.Sprintf("read again %d times", status.Applied)
	if len(status.Restart) > 0 {
		facts["settings"] = "a restart is needed for " + strings.Join(status.Restart, ", ")
	}
	if r.shared != nil {
		facts["without redis"] = r.shared.mode
	}
	return facts
}

// deprecations lists the deprecated operations and their users for the console.
func (p *startup) deprecations(ctx context.Context) ([]console.Deprecation, error) {
	server := p.server()
	if server == nil {
		return nil, errStarting
	}
	list, err := server.ListDeprecations(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	shown := make([]console.Deprecation, len(list))
	for i, d := range list {
		shown[i] = console.Deprecation{Operation: d.Operation, Since: d.Since, Sunset: d.Sunset, Successor: d.Successor, Users: []console.User{}}
		for _, u := range d.Owners {
			shown[i].Users = append(shown[i].Users, console.User{Subject: apikey.OwnerSubject(u.Owner), Requests: u.Requests, Last: u.Last})
		}
	}
	return shown, nil
}
