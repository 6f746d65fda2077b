package deploy_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// An overlay is what those of reference/docs/DEPLOYING.md use of a kustomization.
type overlay struct {
	APIVersion         string   `json:"apiVersion"`
	Kind               string   `json:"kind"`
	Resources          []string `json:"resources"`
	Images             []image  `json:"images"`
	ConfigMapGenerator []struct {
		Name     string   `json:"name"`
		Behavior string   `json:"behavior"`
		Files    []string `json:"files"`
	} `json:"configMapGenerator"`
	Patches []struct {
		Target map[string]string `json:"target"`
		Patch  string            `json:"patch"`
	} `json:"patches"`
}

// The overlays of reference/docs/DEPLOYING.md change what they name. An overlay of a folder sees the
// names after that folder has replaced them: kustomize ignores an image with another name.
func TestOverlaysInTheDocumentation(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read(t, root+"/reference/docs/DEPLOYING.md"), -1)
	bases := make(map[string]bool)
	for _, block := range blocks {
		if !strings.Contains(block[1], "kind: Kustomization") {
			continue
		}
		var o overlay
		if err := yaml.UnmarshalStrict([]byte(block[1]), &o); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
			continue
		}
		if len(o.Resources) != 1 || len(o.Images) != 1 {
			t.Errorf("an overlay has the resources %q and the images %+v, want one of each", o.Resources, o.Images)
			continue
		}
		base := path.Join("overlay", o.Resources[0]) // from a folder beside kubernetes
		bases[base] = true
		k := decode[kustomization](t, base+"/kustomization.yaml")
		if o.Images[0].Name != k.Images[0].NewName {
			t.Errorf("the overlay of %s replaces the image %s, which is called %s there", base, o.Images[0].Name, k.Images[0].NewName)
		}
		for _, g := range o.ConfigMapGenerator {
			if own := k.ConfigMapGenerator[0]; g.Name != own.Name || g.Behavior != "merge" || g.Files[0] != own.Files[0] {
				t.Errorf("the overlay of %s has the ConfigMap %+v, want one that is merged into %+v", base, g, own)
			}
		}
	}
	for _, base := range []string{"kubernetes", "kubernetes/migrate"} {
		if !bases[base] {
			t.Errorf("reference/docs/DEPLOYING.md has no overlay of %s", base)
		}
	}
}
