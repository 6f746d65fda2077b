package config

import "testing"

func TestMistakesInGroups(t *testing.T) {
	for _, tt := range []struct {
		name string
		file string
		want []string // lines, without "petstore.yaml:"
	}{
		{"timeouts", "timeouts: {read: 0s, store: 2h, reed: 1s, write: 30}\n", []string{
			`1:18: timeouts.read: must be a duration from 1ms to 1h such as 10s, got "0s"`,
			`1:29: timeouts.store: must be a duration from 1ms to 1h such as 10s, got "2h"`,
			"1:33: timeouts.reed: unknown setting; did you mean read?",
			"1:50: timeouts.write: must be a duration such as 10s, got a number",
		}},
		{"one timeout", "timeouts: 10s\n", []string{
			"1:11: timeouts: must be a group such as {read_header: 5s}, got text",
		}},
		{"timeouts that never apply", "timeouts: {read_header: 20s, write: 5s}\n", []string{
			"1:25: timeouts.read_header: must be shorter than timeouts.read, which is 15s",
			"1:37: timeouts.write: must be longer than timeouts.store, which is 10s",
		}},
		{"log", "log: {level: INFO, format: xml, file: [], max_size: -1}\n", []string{
			`1:14: log.level: must be debug, info, warn or error, got "INFO"`,
			`1:28: log.format: must be auto, text or json, got "xml"`,
			"1:39: log.file: must be text, got a list",
			`1:53: log.max_size: must be a whole number of MiB from 0 to 1000000, got "-1"`,
		}},
		{"access lists", "deny: {networks: [10.0.0.0/8, here], owners: [\"\"], keys: [a]}\nallow: [ann]\n", []string{
			`1:31: deny.networks[1]: "here" must be a network such as 10.0.0.0/8 or an address`,
			"1:47: deny.owners[0]: must have 1 to 255 characters, got none",
			"1:52: deny.keys: unknown setting; known here are networks, owners",
			"2:8: allow: must be a group such as {networks: [192.0.2.0/24], owners: [ann]}, got a list",
		}},
		{"networks", "deny: {networks: [192.0.2.1/24, \"::ffff:192.0.2.0/120\"]}\n", []string{
			`1:19: deny.networks[0]: "192.0.2.1/24" has bits beyond its length; write 192.0.2.0/24`,
			`1:33: deny.networks[1]: "::ffff:192.0.2.0/120" must be in the form of IPv4, such as 192.0.2.0/24`,
		}},
		{"allowed and denied", "deny: {networks: [10.0.0.0/8], owners: [ann]}\nallow: {networks: [10.0.0.0/8, 10.0.0.0/9], owners: [ann]}\n", []string{
			"2:19: allow.networks: 10.0.0.0/8 is in deny.networks too; remove one",
			`2:53: allow.owners: "ann" is in deny.owners too; remove one`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { wantMistakes(t, tt.file, tt.want) })
	}
}
