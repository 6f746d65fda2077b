package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Flags are the values of flags, by setting; "config" names the settings file. Nil: the
// flag was not given.
type Flags map[string]*string

// FlagFields returns a pointer to a struct with a field for each flag. The tags are for
// kong: a command has the struct among its kong.Plugins, and passes it to [FlagsOf].
func FlagFields() any {
	fields := []reflect.StructField{flagField("config", "FILE", "YAML file with settings")}
	for _, s := range new(Config).settings() {
		if s.flag == "" {
			continue
		}
		help, _, _ := strings.Cut(strings.ReplaceAll(s.about, "`", ""), ". ")
		help = strings.TrimSuffix(help, ".")
		if s.initial != "" {
			help += "; by default " + s.initial
		}
		fields = append(fields, flagField(s.name, s.flag, help))
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

func flagField(setting, placeholder, help string) reflect.StructField {
	tag := fmt.Sprintf("setting:%q name:%q placeholder:%q help:%q",
		setting, strings.TrimPrefix(flagName(setting), "--"), placeholder, help+" ($$"+variable(setting)+").")
	return reflect.StructField{Name: variable(setting), Type: reflect.TypeFor[*string](), Tag: reflect.StructTag(tag)}
}

// FlagsOf returns the flags that were given.
func FlagsOf(fields any) Flags {
	flags := Flags{}
	for field, v := range reflect.ValueOf(fields).Elem().Fields() {
		flags[field.Tag.Get("setting")] = v.Interface().(*string)
	}
	return flags
}

// A reader reads the settings into a Config.
type reader struct {
	report
	file string
	c    *Config
}

// parse returns the settings of a file that was read already, of the environment and of
// flags. It does not check the settings against each other. If some have mistakes, it returns
// the others with the error.
func (s *Source) parse(f file) (*Config, error) {
	if f.err != nil {
		return nil, f.err
	}
	r := &reader{file: f.name, c: &Config{places: map[string]place{}}}
	r.checkEnvironment(s.env)
	settings, inFile := r.c.settings(), map[string]node{}
	if root, ok := r.parseYAML(f.content, "", ""); ok && root.ShortTag() != "!!null" {
		for _, m := range root.members(`settings such as "listen: 127.0.0.1:8080", one per line`) {
			r.collect(m, settings, inFile)
		}
	}
	for _, declared := range settings {
		if declared.name == "plans" {
			r.checkPenalty() // which the plans have
		}
		n, ok := inFile[declared.name]
		if !ok {
			n, _ = r.outside(declared, declared.initial, notSet)
		}
		declared.read(n)
		if text, from, err := s.override(declared); err != nil {
			r.add(place{text: from}, declared.name, "%v", err)
		} else if from != "" {
			if n, ok := r.outside(declared, text, from); ok {
				r.c.places[declared.name] = n.at()
				declared.read(n)
			}
		}
	}
	if err := r.err(); err != nil {
		return r.c, err
	}
	for _, declared := range settings {
		if n, ok := inFile[declared.name]; ok && declared.secret && f.shared {
			r.c.warnOfSecret(n, f.name, declared.name)
		}
	}
	return r.c, nil
}

// withPassword matches a URL with a password.
var withPassword = regexp.MustCompile(`://[^/@]*:[^/@]+@|[?&]password=`)

// warnOfSecret notes that other users can read a setting in the file, if it has a secret.
func (c *Config) warnOfSecret(n node, file, setting string) {
	if text, _ := n.text(); text != "" && (setting == "admin_token" || withPassword.MatchString(text)) {
		c.warning = fmt.Sprintf("other users of the machine can read %s, which has a secret in %s; remove their right with chmod o-r", file, setting)
	}
}

// collect adds a member of the file to the settings in the file, or the members of the group
// that it is.
func (r *reader) collect(m member, settings []setting, inFile map[string]node) {
	for _, s := range settings {
		switch {
		case strings.Contains(m.name, "."): // "log.level: warn" would be a second way to say it
			m.unknown()
			return
		case s.name == m.path:
			inFile[s.name] = m.node
			return
		case strings.HasPrefix(s.name, m.path+"."):
			_, first, _ := strings.Cut(s.name, ".")
			for _, inner := range m.members(fmt.Sprintf("a group such as {%s: %s}", first, s.initial)) {
				r.collect(inner, settings, inFile)
			}
			return
		}
	}
	m.unknown()
}

// outside returns the value of a setting that is not from the file, and whether it is YAML.
func (r *reader) outside(s setting, text, from string) (n node, ok bool) {
	if s.plain {
		return node{&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, s.name, from, r}, true
	}
	return r.parseYAML([]byte(text), s.name, from)
}

// override returns the value of a setting that a flag or the environment sets, and the flag
// or variable that it is from; "" if there is none.
func (s *Source) override(declared setting) (value, from string, err error) {
	name, ofFile := variable(declared.name), fileVariable(declared.name)
	if v := s.flags[declared.name]; v != nil {
		return *v, flagName(declared.name), nil
	}
	value, given := s.env[name]
	file, inFile := s.env[ofFile]
	switch {
	case declared.secret && inFile && given:
		return "", ofFile, fmt.Errorf("%s is set too; unset one of them", name)
	case declared.secret && inFile:
		value, err = readSecret(file)
		return value, ofFile, err
	case given:
		return value, name, nil
	}
	return "", "", nil
}

// maxSecret is longer than any token or URL, in bytes.
const maxSecret = 64 << 10

// readSecret returns the only line of a file.
func readSecret(name string) (string, error) {
	f := readFile(name, maxSecret)
	if f.err != nil {
		return "", fmt.Errorf("cannot read %s: %w", name, f.err)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(f.content), "\n"), "\r")
	if line == "" || strings.ContainsAny(line, "\x00\r\n") {
		return "", fmt.Errorf("must name a file with the value in one line and nothing else, got %s", name)
	}
	return line, nil
}

// ofKubernetes matches the variables that Kubernetes sets in every container for a
// service named petstore or petstore-….
var ofKubernetes = regexp.MustCompile(`^PETSTORE_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// checkEnvironment adds a mistake for each variable that is not a setting. A misspelt one
// would otherwise be ignored.
func (r *reader) checkEnvironment(env map[string]string) {
	known := map[string]bool{variable("config"): true}
	for _, s := range r.c.settings() {
		known[variable(s.name)] = true
		known[fileVariable(s.name)] = s.secret
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !known[name] && !ofKubernetes.MatchString(name) {
			r.add(place{text: name}, "", "unknown variable; reference/docs/CONFIGURATION.md lists all")
		}
	}
}
