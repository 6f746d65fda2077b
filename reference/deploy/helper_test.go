package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

var must = testcheck.NoError

const (
	root   = "../.."          // of the repository
	binary = "petstore"       // as all files name it
	uid    = 65532            // of the image
	health = "/healthz"       // whether the process answers
	ready  = "/readyz"        // whether it should get requests
	saves  = 15 * time.Second // for the last saves, as reference/docs/OPERATING.md says
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.FromSlash(name))
	must(t, err)
	return string(content)
}

// missing reports a file that does not exist.
func missing(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
		t.Errorf("%v", err)
	}
}

// secretFiles are values of the settings that are secrets, as a deployment has them.
var secretFiles = map[string]string{
	"PETSTORE_ADMIN_TOKEN_FILE": "0123456789abcdef0123456789abcdef",
	"PETSTORE_DATABASE_FILE":    "postgres://petstore:hush@postgres:5432/petstore",
	"PETSTORE_REDIS_FILE":       "redis://:hush@redis:6379",
}

// load returns the settings of a server with a settings file and an environment, whose
// secrets are replaced by those of the test.
func load(t *testing.T, file string, env map[string]string) *config.Config {
	t.Helper()
	var environ []string
	for name, value := range env {
		if secret := secretFiles[name]; secret != "" {
			value = filepath.Join(t.TempDir(), "secret")
			must(t, os.WriteFile(value, []byte(secret+"\n"), 0o600))
		}
		environ = append(environ, name+"="+value)
	}
	c, err := config.NewSource(config.Flags{"config": &file}, environ).Load()
	if err != nil {
		t.Fatalf("the server would not start with %s: %v", file, err)
	}
	return c
}

// port returns the port of an address.
func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// stopTime is how long a server needs at most to stop.
func stopTime(c *config.Config) time.Duration { return c.HTTP.DrainDelay + c.HTTP.DrainTimeout + saves }
