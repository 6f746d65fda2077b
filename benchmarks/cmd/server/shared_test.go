package main

import "testing"

func TestNewest(t *testing.T) {
	const nine, nineSix, fifteen = "/usr/lib/postgresql/9/bin/initdb", "/usr/lib/postgresql/9.6/bin/initdb", "/usr/lib/postgresql/15/bin/initdb"
	for _, tt := range []struct {
		paths []string
		want  string
	}{
		{nil, ""},
		{[]string{fifteen, nineSix, nine}, "/usr/lib/postgresql/15/bin"},
		{[]string{nine}, "/usr/lib/postgresql/9/bin"},
	} {
		if got := newest(tt.paths); got != tt.want {
			t.Errorf("newest(%q) = %q, want %q", tt.paths, got, tt.want)
		}
	}
}
