package config

import "testing"

func TestUnknownVariablesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		environ []string
		want    string
	}{
		{"settings", []string{"PETSTORE_CONFIG=x", "PETSTORE_LISTEN=", "PETSTORE_MAX_CONNECTIONS_PER_NETWORK=1"}, ""},
		{"other programs", []string{"HOME=/", "PETSTORES=1", "MY_PETSTORE_LISTEN=1", "=C:=x"}, ""},
		{"misspelt", []string{"PETSTORE_LISTEN_ADMIN=x", "PETSTORE_DATABSE=a=b"},
			"PETSTORE_DATABSE: unknown variable; did you mean PETSTORE_DATABASE?\n" +
				"PETSTORE_LISTEN_ADMIN: unknown variable; did you mean PETSTORE_LISTEN?"},
		{"settings of the file alone", []string{"PETSTORE_PLANS=x", "PETSTORE_PENALTY_STRIKES=1", "PETSTORE_TRUSTED_PROXIES=10.0.0.0/8"},
			"PETSTORE_PENALTY_STRIKES: penalty can only be set in the settings file, which --config or PETSTORE_CONFIG names\n" +
				"PETSTORE_PLANS: plans can only be set in the settings file, which --config or PETSTORE_CONFIG names\n" +
				"PETSTORE_TRUSTED_PROXIES: trusted_proxies can only be set in the settings file, which --config or PETSTORE_CONFIG names"},
		{"nearly a setting of the file alone", []string{"PETSTORE_PLAN=x"}, "PETSTORE_PLAN: unknown variable; did you mean plans in the settings file?"},
		{"the prefix alone", []string{"PETSTORE_=x"}, "PETSTORE_: unknown variable; reference/docs/CONFIGURATION.md lists all"},
		{"more words than a setting", []string{"PETSTORE_DATABASE_URL=x", "PETSTORE_REDIS_URL=x"},
			"PETSTORE_DATABASE_URL: unknown variable; did you mean PETSTORE_DATABASE?\n" +
				"PETSTORE_REDIS_URL: unknown variable; did you mean PETSTORE_REDIS?"},
		{"fewer words than a setting", []string{"PETSTORE_TOKEN=x"}, "PETSTORE_TOKEN: unknown variable; did you mean PETSTORE_ADMIN_TOKEN?"},
		{"like no setting", []string{"PETSTORE_DB=x", "PETSTORE_FOO=x"},
			"PETSTORE_DB: unknown variable; reference/docs/CONFIGURATION.md lists all\n" +
				"PETSTORE_FOO: unknown variable; reference/docs/CONFIGURATION.md lists all"},
		{"Kubernetes", []string{
			"PETSTORE_SERVICE_HOST=10.0.0.1", "PETSTORE_SERVICE_PORT=80", "PETSTORE_SERVICE_PORT_HTTP=80", "PETSTORE_PORT=tcp://10.0.0.1:80",
			"PETSTORE_PORT_80_TCP=x", "PETSTORE_PORT_80_TCP_ADDR=x", "PETSTORE_REDIS_PORT_6379_TCP_PROTO=x", "PETSTORE_REDIS_SERVICE_HOST=x",
		}, ""},
	} {
		if got := errorText(CheckEnvironment(tt.environ)); got != tt.want {
			t.Errorf("%s: CheckEnvironment = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"listen", "lisen", 1}} {
		if got := editDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
