package cli

import (
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

func TestUsageStateOfAnOlderVersionHasNoSubjects(t *testing.T) {
	for _, tt := range []struct {
		schema int64
		want   string
	}{
		{0, "sound, 7 subjects"}, // there is nothing in it
		{1, "sound, of an older version; petstore converts it when it serves"},
		{2, "sound, 7 subjects"},
	} {
		u := usageReport{Report: sqlite.Report{Schema: tt.schema, Latest: 2}, State: "sound", Subjects: 7}
		if got := usageState(u); got != tt.want {
			t.Errorf("the state of a usage file with schema %d is %q, want %q", tt.schema, got, tt.want)
		}
	}
}
