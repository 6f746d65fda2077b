package config

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// accessList reads deny or allow.
func (d *decoder) accessList(n *node, setting string, list *AccessList) {
	if !d.is(n, setting, group, "a group such as {networks: [192.0.2.0/24], owners: [ann]}") {
		return
	}
	d.group(n, setting, fields{
		"networks": func(n *node, setting string) { list.Networks = d.networks(n, setting) },
		"owners":   func(n *node, setting string) { list.Owners = d.owners(n, setting) },
	})
}

func (d *decoder) networks(n *node, setting string) []netip.Prefix {
	var all []netip.Prefix
	for i, item := range d.texts(n, setting, "a list of networks such as [192.0.2.0/24]") {
		p, err := parseNetwork(item.text)
		if err != nil {
			d.add(d.at(item), fmt.Sprintf("%s[%d]", setting, i), "%v", err)
			continue
		}
		all = append(all, p)
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}

func parseNetwork(text string) (netip.Prefix, error) {
	prefixes, err := clientip.ParsePrefixes([]string{text})
	if err != nil {
		return netip.Prefix{}, trimPrefixes(err, "clientip: ")
	}
	p := prefixes[0]
	switch {
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%q must be in the form of IPv4, such as 192.0.2.0/24", text)
	case p != p.Masked():
		return p, fmt.Errorf("%q has bits beyond its length; write %v", text, p.Masked())
	}
	return p, nil
}

func (d *decoder) owners(n *node, setting string) []string {
	var all []string
	for i, item := range d.texts(n, setting, "a list of owners such as [ann]") {
		if err := store.CheckText(item.text); err != nil {
			d.add(d.at(item), fmt.Sprintf("%s[%d]", setting, i), "%v", err)
			continue
		}
		all = append(all, item.text)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
