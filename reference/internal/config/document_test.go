package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write reference/docs/CONFIGURATION.md")

const documentHead = `# Settings of the pets server

A flag overrides the environment, the environment overrides the settings file, and the file overrides the default. ` + "`--config`" + ` or ` + "`PETSTORE_CONFIG`" + ` names the file, in YAML; without them there is none. A duration is a number with a unit, or several: ` + "`90s`, `1h30m`, `30d`" + `, where a day has 24 hours. A setting with a dot in its name is a member of a group: ` + "`log.level`" + ` is ` + "`log: {level: info}`" + `. [petstore.example.yaml](../petstore.example.yaml) is a file with all settings, and [OPERATING.md](OPERATING.md#settings) says how the server reads them.

The last column says which settings are also a flag or a variable, which are named after the setting: ` + "`log.level`" + ` is ` + "`--log-level`" + ` and ` + "`PETSTORE_LOG_LEVEL`" + `. A value that can be a secret can also come from a file with one line: ` + "`PETSTORE_ADMIN_TOKEN_FILE`, `PETSTORE_DATABASE_FILE` and `PETSTORE_REDIS_FILE`" + ` name the file.

This page is written from the code: ` + "`go test ./reference/internal/config -update`" + `.
`

// reference/docs/CONFIGURATION.md has each setting as the code has it.
func TestSettingsAreDocumented(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "CONFIGURATION.md")
	var b strings.Builder
	b.WriteString(documentHead)
	table(&b, "Settings that change without a restart", func(s setting) bool { return !s.restart })
	table(&b, "Settings that need a restart", func(s setting) bool { return s.restart })
	want := b.String()
	if *update {
		must(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("reference/docs/CONFIGURATION.md is not what go test -update writes (-want +got):\n%s", diff)
	}
}

func table(b *strings.Builder, title string, include func(setting) bool) {
	fmt.Fprintf(b, "\n## %s\n\n| setting | meaning | default | flag, variable |\n|---|---|---|---|\n", title)
	for _, s := range settings {
		if !include(s) {
			continue
		}
		also := ""
		if s.hasFlag() {
			also = "both"
		} else if s.hasVariable() {
			also = "variable"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(s.name), s.about, defaultText(s), also)
	}
}

// defaultText returns the default of a setting, or of each of its members.
func defaultText(s setting) string {
	var texts []string
	for _, v := range s.show(Default(), s.name) {
		text := v.text
		if text == "" {
			text = `""`
		}
		if member, ok := strings.CutPrefix(v.name, s.name+"."); ok {
			text = member + ": " + text
		}
		texts = append(texts, code(text))
	}
	return strings.Join(texts, "<br>")
}

func code(text string) string { return "`" + text + "`" }

// Every setting has a description in whole sentences, and a value to show.
func TestEverySettingIsDescribed(t *testing.T) {
	for _, s := range settings {
		if !strings.HasSuffix(s.about, ".") || strings.Contains(s.about, "|") || len(s.show(Default(), s.name)) == 0 {
			t.Errorf("%s: the description %q must be sentences without |, and there must be a default", s.name, s.about)
		}
	}
}
