package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var errNoUsageOwner = apierror.New(http.StatusBadRequest, "invalid_parameter", "Name the owner: owner=NAME.")

// usage answers with what an owner has left, and its requests of the last days.
func (a *admin) usage(w http.ResponseWriter, r *http.Request, s *Server) error {
	_, owner, ok := parameter(r.URL.RawQuery, "owner")
	if !ok {
		return errNoUsageOwner
	}
	answer := Usage{Owner: owner, Plans: []PlanUsage{}, Days: []Day{}}
	list, err := s.Store.ListKeys(r.Context())
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(k store.Key) bool { return k.Owner != owner })
	known, now := len(list) > 0, a.Now()
	list = slices.DeleteFunc(list, func(k store.Key) bool { return !k.Active(now) })
	answer.Keys = len(list)
	if err := addPlans(r.Context(), s, list, &answer); err != nil {
		return err
	}
	days, err := s.Store.ListDailyUse(r.Context(), owner, store.Day(now).AddDate(0, 0, 1-store.KeepDays))
	if err != nil {
		return err
	}
	if !known && len(days) == 0 {
		return apierror.New(http.StatusNotFound, "owner_not_found",
			fmt.Sprintf("There is no key of the owner %q; petstore keys list shows the owners.", owner))
	}
	for _, d := range days {
		answer.Days = append(answer.Days, Day{Day: d.Day.Format(time.DateOnly), Allowed: d.Allowed, Denied: d.Denied})
	}
	return writeJSON(w, http.StatusOK, answer)
}

// addPlans adds to u what the plan of each key has left, each plan once, and what keys with
// limits of their own have left.
func addPlans(ctx context.Context, s *Server, list []store.Key, u *Usage) error {
	seen := map[string]bool{}
	for _, k := range list {
		if err := addLimits(ctx, s, k, u); err != nil {
			return err
		}
		plan, err := s.Plan(k.Plan, k.Quotas)
		id := k.Plan
		if err == nil {
			id = plan.String()
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		if err != nil {
			u.Plans = append(u.Plans, PlanUsage{PlanUsage: api.PlanUsage{Plan: k.Plan, Quotas: []api.QuotaUsage{}}, Error: err.Error()})
			continue
		}
		d, err := s.Limiter.Peek(ctx, apikey.OwnerSubject(u.Owner), plan)
		if err != nil {
			return err
		}
		addPlan(u, &d)
	}
	return nil
}

func addLimits(ctx context.Context, s *Server, k store.Key, u *Usage) error {
	limits, err := k.LimitsPlan()
	if err != nil || limits == nil {
		return err
	}
	d, err := s.Limiter.Peek(ctx, api.KeySubject(k.ID), limits)
	if err != nil {
		return err
	}
	u.Limited = append(u.Limited, KeyUsage{ID: k.ID, Name: k.Name, Quotas: api.QuotasOf(&d)})
	return nil
}

// addPlan adds the decision of a peek for a plan.
func addPlan(u *Usage, d *ratelimit.Decision) {
	u.Plans = append(u.Plans, PlanUsage{PlanUsage: api.PlanUsageOf(d), Unlimited: d.Allowed() && engine.Of(d.Plan).Len() == 0})
	if d.Outcome == ratelimit.Banned {
		u.Ban = &BanEnd{Ends: time.Unix(d.BanEnds, 0).UTC()}
	}
}

// A Usage is what GET /usage answers about one owner.
type Usage struct {
	Owner string      `json:"owner"`
	Keys  int         `json:"keys"`          // active keys
	Plans []PlanUsage `json:"plans"`         // of the active keys, each once
	Ban   *BanEnd     `json:"ban,omitempty"` // nil: not banned
	Days  []Day       `json:"days"`          // the days of the last 90 with a request, the oldest first

	Limited []KeyUsage `json:"limited,omitempty"` // active keys with limits of their own
}

// A PlanUsage is what is left for a key of one plan. All keys of an owner share the usage,
// so the plans of an owner differ only in their limits.
type PlanUsage struct {
	api.PlanUsage
	Unlimited bool   `json:"unlimited,omitempty"`
	Error     string `json:"error,omitempty"` // why requests with such a key cannot be served
}

// A KeyUsage is what is left of the limits of one key alone.
type KeyUsage struct {
	ID     string           `json:"id"`
	Name   string           `json:"name"`
	Quotas []api.QuotaUsage `json:"quotas"`
}

// A BanEnd is the end of a ban.
type BanEnd struct {
	Ends time.Time `json:"ends"`
}

// A Day has the charged requests of one UTC day.
type Day struct {
	Day     string `json:"day"` // such as 2026-11-22
	Allowed int64  `json:"allowed"`
	Denied  int64  `json:"denied"` // limited or banned
}
