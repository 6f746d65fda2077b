package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

var update = flag.Bool("update", false, "write reference/docs/CONFIGURATION.md and reference/petstore.example.yaml")

// Single quotes stand for backticks.
const documentHead = `# Settings of the pets server

A flag overrides the environment, the environment overrides the settings file, and the file overrides the default. '--config' or 'PETSTORE_CONFIG' names the file, in YAML. A duration is a number with a unit, or several: '90s', '1h30m', '30d'. A setting with a dot in its name is a member of a group: 'log.level' is 'log: {level: info}'. [petstore.example.yaml](../petstore.example.yaml) has all settings, and [OPERATING.md](OPERATING.md#settings) says how the server reads them.

Each setting has a variable, 'PETSTORE_LOG_LEVEL' for 'log.level', with lists and groups in YAML. The last column says which have a flag too, '--log-level'. A value that can be a secret can also come from a file with one line, which 'PETSTORE_ADMIN_TOKEN_FILE', 'PETSTORE_DATABASE_FILE' or 'PETSTORE_REDIS_FILE' names.

This page and the example are written from the code: 'go test ./reference/internal/config -update'.
`

const exampleHead = `# All settings of the pets server, with their defaults. Leave out what you do not
# change, and start the server with
#
#     petstore serve --config petstore.yaml
#
# The server applies a change of this file while it runs, except for the settings that
# need a restart. CONFIGURATION.md says more.
`

// reference/docs/CONFIGURATION.md and reference/petstore.example.yaml have each setting as
// it is declared.
func TestSettingsAreDocumented(t *testing.T) {
	for path, want := range map[string]string{"docs/CONFIGURATION.md": page(), "petstore.example.yaml": example(t)} {
		path = filepath.Join("..", "..", path)
		if *update {
			must(t, os.WriteFile(path, []byte(want), 0o644))
		}
		got, err := os.ReadFile(path)
		must(t, err)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what go test -update writes (-want +got):\n%s", path, diff)
		}
	}
}

func page() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(documentHead, "'", "`"))
	for _, restart := range []bool{false, true} {
		title := map[bool]string{false: "change without a restart", true: "need a restart"}[restart]
		fmt.Fprintf(&b, "\n## Settings that %s\n\n| setting | meaning | default | flag |\n|---|---|---|---|\n", title)
		for _, s := range new(Config).settings() {
			if s.restart == restart {
				fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", s.name, s.about, shown(s), map[bool]string{true: "yes"}[s.flag != ""])
			}
		}
	}
	return b.String()
}

func shown(s setting) string {
	if s.initial == "" {
		return `""`
	}
	return s.initial
}

var link = regexp.MustCompile(`\[([^]]+)\]\([^)]+\)`)

func example(t *testing.T) string {
	var b strings.Builder
	b.WriteString(exampleHead)
	before := ""
	for _, s := range new(Config).settings() {
		group, name, grouped := strings.Cut(s.name, ".")
		indent := ""
		if !grouped {
			name = group
		} else if indent = "  "; group != before {
			fmt.Fprintf(&b, "\n%s:", group)
		}
		before = group
		b.WriteByte('\n')
		about := link.ReplaceAllString(strings.ReplaceAll(s.about, "`", ""), "$1")
		if s.restart {
			about += " A change needs a restart."
		}
		line := indent + "#"
		for word := range strings.FieldsSeq(about) {
			if len(line)+1+len(word) > 90 {
				b.WriteString(line + "\n")
				line = indent + "#"
			}
			line += " " + word
		}
		fmt.Fprintf(&b, "%s\n%s%s:%s\n", line, indent, name, exampleValue(t, s))
	}
	return b.String()
}

// exampleValue returns the default, with each member of a group in a line.
func exampleValue(t *testing.T, s setting) string {
	var n yaml.Node
	must(t, yaml.Load([]byte(shown(s)), &n))
	if n.Content[0].Kind != yaml.MappingNode {
		return " " + shown(s)
	}
	var b strings.Builder
	for pair := n.Content[0].Content; len(pair) > 0; pair = pair[2:] {
		value, err := yaml.Dump(pair[1], yaml.WithLineWidth(-1))
		must(t, err)
		fmt.Fprintf(&b, "\n  %s: %s", pair[0].Value, strings.TrimSpace(string(value)))
	}
	return b.String()
}
