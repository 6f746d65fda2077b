package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Flags are the settings of the command line. Nil: the flag was not given. The tags
// are for kong: a command embeds Flags and passes it to [NewSource].
type Flags struct {
	Config      *string `name:"config" placeholder:"FILE" help:"YAML file with settings ($$PETSTORE_CONFIG)."`
	Listen      *string `name:"listen" placeholder:"HOST:PORT" help:"Address of the API ($$PETSTORE_LISTEN)."`
	AdminListen *string `name:"admin-listen" placeholder:"HOST:PORT" help:"Address of the admin listener; empty turns it off ($$PETSTORE_ADMIN_LISTEN)."`
	Database    *string `name:"database" placeholder:"FILE|URL" help:"SQLite file for pets and keys, or a postgres:// URL; a password is safer in the variable ($$PETSTORE_DATABASE)."`
	Migrate     *string `name:"migrate" placeholder:"auto|manual" help:"Whether an older schema of the database is upgraded, or refused until petstore migrate was run. Default auto ($$PETSTORE_MIGRATE)."`
	Redis       *string `name:"redis" placeholder:"URL,..." help:"Redis through which servers share limits; several URLs for a cluster ($$PETSTORE_REDIS)."`
	UsageFile   *string `name:"usage-file" placeholder:"FILE" help:"File that keeps usage and bans without Redis; by default beside the SQLite file ($$PETSTORE_USAGE_FILE)."`
	TLSCert     *string `name:"tls-cert" placeholder:"FILE" help:"PEM file with a certificate chain; turns on TLS ($$PETSTORE_TLS_CERT)."`
	TLSKey      *string `name:"tls-key" placeholder:"FILE" help:"PEM file with its private key ($$PETSTORE_TLS_KEY)."`

	MaxConnections           *string `name:"max-connections" placeholder:"N" help:"Maximum number of open connections; to accept one more, the server closes the one that has been idle longest. Default 8192 ($$PETSTORE_MAX_CONNECTIONS)."`
	MaxConnectionsPerNetwork *string `name:"max-connections-per-network" placeholder:"N" help:"Maximum number of connections from an IPv4 address or IPv6 /64; loopback addresses and trusted proxies are exempt. Default 256 ($$PETSTORE_MAX_CONNECTIONS_PER_NETWORK)."`
	DrainDelay               *string `name:"drain-delay" placeholder:"DURATION" help:"After SIGTERM, keep serving for this long while /readyz answers 503, so that load balancers notice. Default 0s ($$PETSTORE_DRAIN_DELAY)."`

	LogLevel   *string `name:"log-level" placeholder:"LEVEL" help:"Lowest level of the log: debug, info, warn or error. Default info ($$PETSTORE_LOG_LEVEL)."`
	LogFormat  *string `name:"log-format" placeholder:"FORMAT" help:"Format of the log: text, json, or auto for text on a terminal and JSON elsewhere. Default auto ($$PETSTORE_LOG_FORMAT)."`
	LogFile    *string `name:"log-file" placeholder:"FILE" help:"File for the log instead of standard output. Keep it on another disk than the database. SIGHUP opens it again ($$PETSTORE_LOG_FILE)."`
	LogMaxSize *string `name:"log-max-size" placeholder:"MIB" help:"Largest size of that file in MiB, at which .old is added to its name; 0 for no bound. Default 1024 ($$PETSTORE_LOG_MAX_SIZE)."`
}

// lookup returns the value of the flag of a setting, nil if it was not given, and whether
// there is such a flag.
func (f Flags) lookup(setting string) (value *string, exists bool) {
	for field, v := range reflect.ValueOf(f).Fields() {
		if "--"+field.Tag.Get("name") == flagName(setting) {
			return v.Interface().(*string), true
		}
	}
	return nil, false
}

// variable returns the variable of a setting.
func variable(name string) string {
	return "PETSTORE_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// fileVariable returns the variable that names a file with the value of a setting. Only
// settings that can hold a secret have one, because other processes of the user can see the
// environment, and because container and service managers pass secrets as files.
func fileVariable(name string) string { return variable(name) + "_FILE" }

// flagName returns the flag of a setting.
func flagName(name string) string {
	return "--" + strings.NewReplacer("_", "-", ".", "-").Replace(name)
}

// applyOverrides sets the values of the environment, then those of the flags.
func (c *Config) applyOverrides(flags Flags, lookupEnv func(string) (string, bool), r *report) {
	for _, s := range settings {
		if !s.hasVariable() {
			continue
		}
		value, from, err := s.override(flags, lookupEnv)
		if from == "" {
			continue
		}
		c.places[s.name] = place{text: from}
		if err == nil {
			err = s.set(c, value)
		}
		if err != nil {
			r.add(place{text: from}, s.name, "%v", err)
		}
	}
}

// override returns the value of a setting that a flag or the environment sets, and the flag
// or variable that it is from; "" if there is none.
func (s setting) override(flags Flags, lookupEnv func(string) (string, bool)) (value, from string, err error) {
	if v, _ := flags.lookup(s.name); v != nil {
		return *v, flagName(s.name), nil
	}
	value, given := lookupEnv(variable(s.name))
	if s.secret {
		from := fileVariable(s.name)
		switch file, ok := lookupEnv(from); {
		case ok && given:
			return "", from, fmt.Errorf("%s is set too; unset one of them", variable(s.name))
		case ok:
			value, err = readSecret(file)
			return value, from, err
		}
	}
	if !given {
		return "", "", nil
	}
	return value, variable(s.name), nil
}

// maxSecret is longer than any token or URL, in bytes.
const maxSecret = 64 << 10

// readSecret returns the only line of a file. A pipe is refused: it could be read only
// once, and the server reads its settings again.
func readSecret(name string) (string, error) {
	if name == "" {
		return "", errors.New("must name a file with the value, but is empty; unset it if there is none")
	}
	content, err := readRegularFile(name, maxSecret)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", name, err)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	if line == "" {
		return "", fmt.Errorf("must name a file with the value, got %s, which is empty", name)
	}
	if len(content) > maxSecret || strings.ContainsAny(line, "\x00\r\n") {
		return "", fmt.Errorf("must name a file with the value in one line, got %s, which has something else", name)
	}
	return line, nil
}

// ofKubernetes matches the variables that Kubernetes sets in every container for a
// service named petstore or petstore-….
var ofKubernetes = regexp.MustCompile(`^PETSTORE_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// CheckEnvironment returns an error that names each variable in environ, which is
// in the form of [os.Environ], that begins with PETSTORE_ and is not a setting. The
// error suggests a setting that is meant, or says that the setting belongs in the file. A
// misspelt variable would otherwise be ignored. Variables that Kubernetes sets for
// services are not errors.
func CheckEnvironment(environ []string) error {
	known := []string{variable("config")}
	for _, s := range settings {
		if s.hasVariable() {
			known = append(known, variable(s.name))
		}
		if s.secret {
			known = append(known, fileVariable(s.name))
		}
	}
	candidates := slices.Clone(known)
	for _, setting := range fileOnlySettings() {
		candidates = append(candidates, variable(setting))
	}
	slices.Sort(candidates)
	var r report
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variable("")) || slices.Contains(known, name) || ofKubernetes.MatchString(name) {
			continue
		}
		if setting := fileOnlySetting(name); setting != "" {
			r.add(place{text: name}, "", "%s can only be set in the settings file, which --config or %s names", setting, variable("config"))
			continue
		}
		r.add(place{text: name}, "", "unknown variable;%s", meantVariable(name, candidates))
	}
	return r.err()
}

// meantVariable returns a question that suggests one of the variables for the unknown one
// name: one with at most two letters that differ, one that name adds words to, one that
// name lacks words of, or the nearest.
func meantVariable(name string, variables []string) string {
	word := strings.TrimPrefix(name, variable(""))
	longest := slices.SortedStableFunc(slices.Values(variables), func(a, b string) int { return len(b) - len(a) })
	longer := slices.IndexFunc(longest, func(v string) bool { return strings.HasPrefix(name, v+"_") })
	shorter := slices.IndexFunc(longest, func(v string) bool { return word != "" && strings.HasSuffix(v, "_"+word) })
	meant := nearest(name, variables)
	switch distance := editDistance(name, meant); {
	case distance <= 2:
	case longer >= 0:
		meant = longest[longer]
	case shorter >= 0:
		meant = longest[shorter]
	case distance > len(word)/2:
		return " reference/docs/CONFIGURATION.md lists all"
	}
	if setting := fileOnlySetting(meant); setting != "" {
		meant = setting + " in the settings file"
	}
	return " did you mean " + meant + "?"
}

// fileOnlySettings returns the settings and groups that only the file can set.
func fileOnlySettings() (names []string) {
	for _, s := range settings {
		name, _, _ := strings.Cut(s.name, ".")
		if !s.hasVariable() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// fileOnlySetting returns the setting that a variable names, if only the file can set
// it: plans for PETSTORE_PLANS and PETSTORE_PLANS_FREE. Otherwise it returns "".
func fileOnlySetting(name string) string {
	names := fileOnlySettings()
	if i := slices.IndexFunc(names, func(s string) bool { return strings.HasPrefix(name+"_", variable(s)+"_") }); i >= 0 {
		return names[i]
	}
	return ""
}

// nearest returns the element of names with the smallest edit distance to name; on a
// tie the first.
func nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return editDistance(name, a) - editDistance(name, b) })
}

// didYouMean returns a question that suggests the nearest of names, or "" if none is
// near.
func didYouMean(name string, names []string) string {
	meant := nearest(name, names)
	if editDistance(name, meant) > len(name)/2 {
		return ""
	}
	return " did you mean " + meant + "?"
}

// editDistance returns how many bytes must be inserted, removed or replaced to turn
// a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // of the distances to the prefixes of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
