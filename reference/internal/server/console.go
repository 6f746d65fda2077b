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

// openConsole makes the limiter for an operator, and the console of the admin listener.
func (s *server) openConsole(context.Context) (err error) {
	s.audited = admin.Audited(s.limiter, s.store, s.Logger, time.Now)
	engines := []ratelimit.Limiter{s.embedded}
	if s.shared != nil {
		engines = append(engines, s.shared.Limiter)
		if s.shared.shares != nil {
			engines = append(engines, s.shared.shares)
		}
	}
	s.console, err = console.New(s.audited, console.Options{
		Title: "petstore", Engines: engines,
		Facts:        s.facts,
		Deprecations: s.deprecations,
	})
	return err
}

// facts are what the console shows about the server in addition to its own counts.
func (s *server) facts(ctx context.Context) map[string]any {
	facts := map[string]any{"version": s.Build.Version}
	for _, check := range s.checks {
		facts["check: "+check.Name] = "ok"
		if err := check.Run(ctx); err != nil {
			facts["check: "+check.Name] = err.Error()
		}
	}
	if s.settings.Load() == nil {
		return facts
	}
	for name, server := range map[string]*httpserver.Server{"api": s.api, "admin": s.admin} {
		n := server.Stats()
		facts["connections: "+name] = fmt.Sprintf("%d open, %d idle, %d refused", n.Open, n.Idle, n.Refused)
	}
	status := s.reloads.Status()
	facts["settings"] = fmt.Sprintf("read again %d times", status.Applied)
	if len(status.Restart) > 0 {
		facts["settings"] = "a restart is needed for " + strings.Join(status.Restart, ", ")
	}
	if s.shared != nil {
		facts["on_redis_failure"] = s.shared.mode
	}
	return facts
}

// deprecations lists the deprecated operations and their users for the console.
func (s *server) deprecations(ctx context.Context) ([]console.Deprecation, error) {
	server := s.shown()
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
