package api

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// An AccessList names clients by their network and by the owner of their key. The zero
// value names none.
type AccessList struct {
	// Networks contain the addresses of clients, with or without a key. A client behind a
	// NAT64 translator also has the IPv4 address that clientip.Network returns.
	Networks []netip.Prefix

	// Owners are the owners of keys. A client is only taken for an owner if it sends a
	// valid key.
	Owners []string
}

// An accessTable finds clients in an AccessList. Both lookups are fast with thousands
// of entries.
type accessTable struct {
	networks []netip.Prefix // sorted, and no two overlap
	owners   map[string]bool
}

func newAccessTable(list AccessList) (*accessTable, error) {
	sorted := slices.Clone(list.Networks)
	slices.SortFunc(sorted, netip.Prefix.Compare)
	t := &accessTable{owners: make(map[string]bool, len(list.Owners))}
	for _, p := range sorted {
		if err := checkNetwork(p); err != nil {
			return nil, err
		}
		// Prefixes nest or are apart, and the wider of two that nest comes first.
		if n := len(t.networks); n == 0 || !t.networks[n-1].Overlaps(p) {
			t.networks = append(t.networks, p)
		}
	}
	for _, owner := range list.Owners {
		if owner == "" {
			return nil, errors.New("Owners must not contain an empty name")
		}
		t.owners[owner] = true
	}
	return t, nil
}

func checkNetwork(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return errors.New("Networks must not contain the zero prefix")
	case p.Addr().Is4In6():
		return fmt.Errorf("Networks must have IPv4 in the form of IPv4, got %v", p)
	case p != p.Masked():
		return fmt.Errorf("Networks must have no bits beyond their length: got %v, write %v", p, p.Masked())
	}
	return nil
}

// hasAddr reports whether the address of a client is in one of the networks.
func (t *accessTable) hasAddr(addr netip.Addr) bool {
	if len(t.networks) == 0 {
		return false
	}
	addr = addr.Unmap().WithZone("")
	if n := clientip.Network(addr).Addr(); n.Is4() && n != addr && t.contains(n) {
		return true
	}
	return t.contains(addr)
}

func (t *accessTable) contains(addr netip.Addr) bool {
	after := sort.Search(len(t.networks), func(i int) bool { return addr.Less(t.networks[i].Addr()) })
	return after > 0 && t.networks[after-1].Contains(addr)
}

func (t *accessTable) hasOwner(owner string) bool { return t.owners[owner] }
