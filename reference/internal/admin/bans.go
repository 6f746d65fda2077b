package admin

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Ban is the ban of an owner or of a network; the other field is empty.
type Ban struct {
	Owner   string    `json:"owner,omitempty"`
	Network string    `json:"network,omitempty"`
	Ends    time.Time `json:"ends"`
	Level   int       `json:"level"` // 1 for a first ban; higher for each that followed too soon
}

type bans struct {
	Bans []Ban `json:"bans"`
}

// unbanned says whether there was a ban. Strikes are deleted in either case.
type unbanned struct {
	Unbanned bool `json:"unbanned"`
}

// listBans lists the bans in force, those that end last first.
func (a *admin) listBans(w http.ResponseWriter, r *http.Request) error {
	inForce, err := a.Bans.Bans(r.Context())
	if err != nil {
		return err
	}
	slices.SortFunc(inForce, func(x, y ratelimit.Ban) int {
		return cmp.Or(y.Ends.Compare(x.Ends), cmp.Compare(x.Subject, y.Subject))
	})
	answer := bans{Bans: make([]Ban, len(inForce))}
	for i, b := range inForce {
		answer.Bans[i] = newBan(b)
	}
	return writeJSON(w, http.StatusOK, answer)
}

func newBan(b ratelimit.Ban) Ban {
	ban := Ban{Ends: b.Ends.UTC(), Level: b.Level}
	if owner, ok := strings.CutPrefix(b.Subject, apikey.OwnerSubject("")); ok {
		ban.Owner = owner
	} else {
		ban.Network = strings.TrimPrefix(b.Subject, "network:")
	}
	return ban
}

var errNoTarget = apierror.New(http.StatusBadRequest, apierror.CodeInvalidParameter,
	"Name the owner or the network to unban: owner=NAME, or network=ADDRESS with an IP address or a network as in the list of bans.")

func (a *admin) unban(w http.ResponseWriter, r *http.Request) error {
	subject, ok := subjectOf(r.URL.RawQuery)
	if !ok {
		return errNoTarget
	}
	e := entryOf(r.Context())
	e.subject = subject
	was, err := a.Bans.Unban(r.Context(), subject)
	switch {
	case err != nil:
		e.outcome = "failed"
		return err
	case was:
		e.outcome = "unbanned"
	default:
		e.outcome = "was not banned"
	}
	return writeJSON(w, http.StatusOK, unbanned{was})
}

// subjectOf returns the subject that a query of exactly one parameter names.
func subjectOf(query string) (string, bool) {
	values, err := url.ParseQuery(query)
	if err != nil || len(values) != 1 {
		return "", false
	}
	if v := values["owner"]; len(v) == 1 && v[0] != "" {
		return apikey.OwnerSubject(v[0]), true
	}
	if v := values["network"]; len(v) == 1 {
		addr, ok := parseNetwork(v[0])
		return clientip.NetworkSubject(addr), ok
	}
	return "", false
}

// parseNetwork returns an address of the network that text names: an address, or a
// network in the form in which bans are listed.
func parseNetwork(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || clientip.Network(prefix.Addr()) != prefix {
			return netip.Addr{}, false
		}
		addr = prefix.Addr()
	}
	return addr, true
}
