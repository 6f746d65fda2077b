package browsertest

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
)

// controls are the roles that a screen reader announces with a name.
var controls = map[string]bool{
	"textbox": true, "combobox": true, "button": true, "link": true, "checkbox": true,
	"DisclosureTriangle": true, "dialog": true, "img": true, "image": true, "progressbar": true,
}

// CheckNames fails the test if the accessibility tree of the page as it is now has a
// control, a picture or a dialog without a name, or fewer than least of them.
func (p *Page) CheckNames(t testing.TB, least int) {
	t.Helper()
	seen := 0
	for _, n := range Call(t, p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil || !controls[text(n.Role)] {
			continue
		}
		seen++
		if n.Name == nil || text(n.Name) == "" {
			t.Errorf("a %s (DOM node %d) has no name for screen readers", text(n.Role), n.BackendDOMNodeID)
		}
	}
	if seen < least {
		t.Errorf("the accessibility tree has %d controls, want %d at least", seen, least)
	}
}

func text(v *accessibility.Value) string {
	var s string
	_ = json.Unmarshal(v.Value, &s) // another type is not a text
	return s
}
