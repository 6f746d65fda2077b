package cli

import "testing"

// writes counts calls of Write.
type writes int

func (n *writes) Write(p []byte) (int, error) {
	*n++
	return len(p), nil
}

// A list of many keys must not cost a system call for each cell.
func TestATableIsWrittenInLargePieces(t *testing.T) {
	var n writes
	table := newTable(&n, "ID", "OWNER")
	for range 1000 {
		table.row("key_0123456789abcdef", "ada")
	}
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	if n > 20 {
		t.Errorf("a table of 1,000 rows was written in %d pieces, want at most 20", n)
	}
}
