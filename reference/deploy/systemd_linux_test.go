package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

const unit = "systemd/petstore.service"

// directive returns the value of a directive that the unit has once.
func directive(t *testing.T, name string) string {
	t.Helper()
	all := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(read(t, unit), -1)
	if len(all) != 1 {
		t.Fatalf("the unit has %s %d times, want once", name, len(all))
	}
	return all[0][1]
}

// The unit gives the server what its defaults need.
func TestTheUnitFitsTheServer(t *testing.T) {
	c := config.Default()
	if files, err := strconv.Atoi(directive(t, "LimitNOFILE")); err != nil || files < c.HTTP.MaxConns+192 {
		t.Errorf("LimitNOFILE is %d, %v; the server needs max_connections, %d, and 192 more", files, err, c.HTTP.MaxConns)
	}
	if stop := directive(t, "TimeoutStopSec"); stop != "90s" || stopTime(c).Seconds() > 90 {
		t.Errorf("TimeoutStopSec is %s, the server needs up to %v", stop, stopTime(c))
	}
	// The database is in the folder that systemd creates for the server.
	state := "/var/lib/" + directive(t, "StateDirectory")
	if file := load(t, "systemd/petstore.yaml", nil).Database; filepath.Dir(file) != state {
		t.Errorf("the database is %s, and the server may write to %s", file, state)
	}
	// The variables are settings, also those that an operator turns on.
	env := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#?Environment=(PETSTORE_\w+)=%d/(\w+)$`).FindAllStringSubmatch(read(t, unit), -1) {
		env[m[1]] = m[2]
		if !strings.Contains(read(t, unit), "LoadCredential="+m[2]+":") {
			t.Errorf("%s names a credential that is not loaded", m[1])
		}
	}
	if len(env) != len(secretFiles) {
		t.Errorf("the unit passes %v, want all secrets", env)
	}
	load(t, "systemd/petstore.yaml", env)
}

// systemd-analyze knows each directive, and finds the service well confined.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze := testenv.Tool(t, "systemd-analyze")
	t.Parallel()
	text := strings.Replace(read(t, unit), "ExecStart=petstore", "ExecStart="+os.Args[0], 1)
	file := filepath.Join(t.TempDir(), "petstore.service")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	for _, args := range [][]string{
		{"verify", "--man=no", file},
		{"security", "--offline=true", "--threshold=15", file}, // in tenths; 0 is best
	} {
		out, err := exec.Command(analyze, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
