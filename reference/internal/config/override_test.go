package config

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFlagOverEnvironmentOverFileOverDefault(t *testing.T) {
	text := func(s string) *string { return &s }
	file := tempFile(t, "listen: 127.0.0.1:1\n")
	other := tempFile(t, "listen: 127.0.0.1:4\n")
	for _, tt := range []struct {
		name  string
		flags Flags
		env   map[string]string
		want  string
		where string
	}{
		{"default", Flags{}, nil, "127.0.0.1:8080", "default"},
		{"file", Flags{Config: &file}, nil, "127.0.0.1:1", file + ":1:9"},
		{"file by environment", Flags{}, map[string]string{"PETSTORE_CONFIG": file}, "127.0.0.1:1", file + ":1:9"},
		{"file by flag and environment", Flags{Config: &other}, map[string]string{"PETSTORE_CONFIG": file}, "127.0.0.1:4", other + ":1:9"},
		{"environment", Flags{}, map[string]string{"PETSTORE_LISTEN": "127.0.0.1:2"}, "127.0.0.1:2", "PETSTORE_LISTEN"},
		{"environment over file", Flags{Config: &file}, map[string]string{"PETSTORE_LISTEN": "127.0.0.1:2"}, "127.0.0.1:2", "PETSTORE_LISTEN"},
		{"flag over file", Flags{Config: &file, Listen: text("127.0.0.1:3")}, nil, "127.0.0.1:3", "--listen"},
		{"flag over all", Flags{Config: &file, Listen: text("127.0.0.1:3")}, map[string]string{"PETSTORE_LISTEN": "broken"}, "127.0.0.1:3", "--listen"},
		{"other variables are left alone", Flags{}, map[string]string{"PETSTORE_SERVICE_HOST": "10.0.0.1"}, "127.0.0.1:8080", "default"},
	} {
		c, err := NewSource(tt.flags, environ(tt.env)).Load()
		if err != nil {
			t.Errorf("%s: Load = %v", tt.name, err)
			continue
		}
		if c.Listen != tt.want || c.Where("listen") != tt.where {
			t.Errorf("%s: listen is %s from %s, want %s from %s", tt.name, c.Listen, c.Where("listen"), tt.want, tt.where)
		}
	}
}

func TestEveryOutsideSetting(t *testing.T) {
	value := map[string]string{
		"listen":       "127.0.0.1:1",
		"admin_listen": "",
		"admin_token":  "0123456789abcdef",
		"database":     "other.db",
		"migrate":      "manual",
		"first_key":    "false",
		"usage_file":   "usage.db",
		"redis":        "redis://a:1, rediss://u:p@b:2/0",
		"tls_cert":     "cert.pem",
		"tls_key":      "key.pem",

		"max_connections":             "100",
		"max_connections_per_network": "10",
		"drain_delay":                 "10s",

		"log.level":    "warn",
		"log.format":   "json",
		"log.file":     "pets.log",
		"log.max_size": "100",
	}
	want := Default()
	want.Listen, want.AdminListen, want.AdminToken = "127.0.0.1:1", "", "0123456789abcdef"
	want.Database, want.Migrate, want.FirstKey, want.UsageFile = "other.db", MigrateManual, false, "usage.db"
	want.Redis = []string{"redis://a:1", "rediss://u:p@b:2/0"}
	want.TLSCert, want.TLSKey = "cert.pem", "key.pem"
	want.MaxConnections, want.MaxConnectionsPerNetwork, want.DrainDelay = 100, 10, 10*time.Second
	want.Log = Log{slog.LevelWarn, LogJSON, "pets.log", 100}

	env := map[string]string{}
	for name, v := range value {
		env[variable(name)] = v
	}
	flags := Flags{}
	text := func(name string) *string { v := value[name]; return &v }
	flags.Listen, flags.AdminListen, flags.Database = text("listen"), text("admin_listen"), text("database")
	flags.Migrate, flags.UsageFile = text("migrate"), text("usage_file")
	flags.Redis, flags.TLSCert, flags.TLSKey = text("redis"), text("tls_cert"), text("tls_key")
	flags.MaxConnections, flags.MaxConnectionsPerNetwork = text("max_connections"), text("max_connections_per_network")
	flags.DrainDelay = text("drain_delay")
	flags.LogLevel, flags.LogFormat = text("log.level"), text("log.format")
	flags.LogFile, flags.LogMaxSize = text("log.file"), text("log.max_size")
	file, log := "", ""
	for name, v := range value {
		if !strings.HasPrefix(name, "max_") && name != "log.max_size" && name != "first_key" { // only text has quotes
			v = `"` + v + `"`
		}
		if member, ok := strings.CutPrefix(name, "log."); ok {
			log += "  " + member + ": " + v + "\n"
			continue
		}
		file += name + ": " + v + "\n"
	}
	file += "log:\n" + log

	for from, tt := range map[string]struct {
		file  string
		flags Flags
		env   map[string]string
	}{
		"file":        {file: file},
		"environment": {env: env},
		"flags":       {flags: flags, env: map[string]string{"PETSTORE_ADMIN_TOKEN": value["admin_token"], "PETSTORE_FIRST_KEY": "false"}},
	} {
		got, err := load("petstore.yaml", []byte(tt.file), tt.flags, environ(tt.env))
		if err != nil {
			t.Errorf("from %s: %v", from, err)
			continue
		}
		got.places = nil
		if !reflect.DeepEqual(want, got) {
			t.Errorf("from %s: settings are\n%+v\nwant\n%+v", from, got, want)
		}
	}
}
