package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func invalid(message string) *apierror.Error {
	return apierror.New(http.StatusBadRequest, "invalid_parameter", message)
}

var (
	errNoTarget  = invalid("Name an owner or a network: owner, or network with an IP address or a network as in the list of bans.")
	errBanReason = invalid("reason must be at most 200 bytes of UTF-8, without control characters and without spaces at its ends.")
)

// subjectOf returns the subject of an owner or of a network, of which one is empty. A network is
// an address, or a network in the form in which bans are listed.
func subjectOf(owner, network string) (string, error) {
	if (owner == "") == (network == "") {
		return "", errNoTarget
	}
	if owner != "" {
		if err := store.CheckText(owner); err != nil {
			return "", invalid("owner " + err.Error() + ".")
		}
		return apikey.OwnerSubject(owner), nil
	}
	addr, err := netip.ParseAddr(network)
	if err != nil {
		prefix, err := netip.ParsePrefix(network)
		if err != nil || clientip.Network(prefix.Addr()) != prefix {
			return "", invalid(fmt.Sprintf("%q cannot be banned: name one IP address, or its network as in the list of bans, "+
				"which is an IPv4 /32 or an IPv6 /64. Block larger networks in front of the server.", network))
		}
		addr = prefix.Addr()
	}
	return clientip.NetworkSubject(addr), nil
}

// ban bans a subject, and replaces a ban that is in force. The answer is the new ban.
func (a *admin) ban(w http.ResponseWriter, r *http.Request, s *Server) error {
	b, err := a.newBan.Decode(w, r)
	if err != nil {
		return err
	}
	subject, err := subjectOf(b.Owner, b.Network)
	if err != nil {
		return err
	}
	length := time.Duration(b.Seconds) * time.Second
	reason, err := engine.CheckBan(subject, length, b.Reason)
	if err != nil {
		return errBanReason
	}
	if err := s.Limiter.Ban(r.Context(), subject, length, b.Reason); err != nil {
		return err
	}
	// The engine rounds up to whole seconds too. Its clock may run in Redis.
	ends := a.Now().Add(length + time.Second - 1).Truncate(time.Second)
	return writeJSON(w, http.StatusOK, showBan(engine.Ban{Subject: subject, Ends: ends, Reason: reason}))
}

func (a *admin) unban(w http.ResponseWriter, r *http.Request, s *Server) error {
	target := map[string]string{}
	if name, value, ok := parameter(r.URL.RawQuery, "owner", "network"); ok {
		target[name] = value
	}
	subject, err := subjectOf(target["owner"], target["network"])
	if err != nil {
		return err
	}
	was, err := s.Limiter.Unban(r.Context(), subject)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"unbanned": was})
}

// parameter returns the value of the only parameter of a query, which has one of these
// names and is UTF-8.
func parameter(query string, names ...string) (name, value string, ok bool) {
	values, err := url.ParseQuery(query)
	for name, v := range values {
		if err == nil && len(values) == 1 && len(v) == 1 && v[0] != "" && utf8.ValidString(v[0]) && slices.Contains(names, name) {
			return name, v[0], true
		}
	}
	return "", "", false
}

// listBans lists the bans in force, those that end last first.
func (a *admin) listBans(w http.ResponseWriter, r *http.Request, s *Server) error {
	inForce, err := s.Limiter.Bans(r.Context())
	if err != nil {
		return err
	}
	slices.SortFunc(inForce, func(x, y engine.Ban) int {
		return cmp.Or(y.Ends.Compare(x.Ends), cmp.Compare(x.Subject, y.Subject))
	})
	list := make([]Ban, len(inForce))
	for i, b := range inForce {
		list[i] = showBan(b)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"bans": list})
}

// networkPrefix begins the subject of a network; see [clientip.NetworkSubject].
const networkPrefix = "network:"

func showBan(b engine.Ban) Ban {
	ban := Ban{Ends: b.Ends.UTC(), Level: b.Level, Reason: b.Reason}
	if owner, ok := strings.CutPrefix(b.Subject, apikey.OwnerSubject("")); ok {
		ban.Owner = owner
	} else {
		ban.Network = strings.TrimPrefix(b.Subject, networkPrefix)
	}
	return ban
}

// A Ban is the ban of an owner or of a network; the other field is empty.
type Ban struct {
	Owner   string    `json:"owner,omitempty"`
	Network string    `json:"network,omitempty"`
	Ends    time.Time `json:"ends"`
	Level   int       `json:"level"`  // 1 for a first ban; higher for each that followed too soon; 0 if all were made by hand
	Reason  string    `json:"reason"` // "strikes", "by hand", or the reason of the NewBan
}

// A NewBan is the body of POST /bans: an owner or a network, the length of the ban, and what
// the client reads during the ban; "" means that the operator has banned it.
type NewBan struct {
	Owner   string `json:"owner,omitempty"`
	Network string `json:"network,omitempty"`
	Seconds int64  `json:"seconds"`
	Reason  string `json:"reason,omitempty"`
}

// newBanSchema is the schema of a NewBan. A ban has at most 366 days.
const newBanSchema = `{
	"type": "object",
	"required": ["seconds"],
	"properties": {
		"owner": {"type": "string"},
		"network": {"type": "string"},
		"seconds": {"type": "integer", "minimum": 1, "maximum": 31622400},
		"reason": {"type": "string"}
	},
	"additionalProperties": false
}`
