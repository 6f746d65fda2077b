package redislimit

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/animalstore/gatehouse/ratelimit/engine"
)

//go:embed limit.lua
var limitText string

//go:embed smooth.lua
var smoothText string

//go:embed group.lua
var groupText string

// A script is a text, and the name by which EVALSHA knows it.
type script struct{ text, digest string }

var (
	limitScript  = newScript(limitText)
	smoothScript = newScript(smoothText)
	groupScript  = newScript(groupText)
)

// newScript puts parts of other scripts into a text, in place of lines such as
//
//	--{ limit.lua: functions }
func newScript(text string) script {
	var whole strings.Builder
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "--{ limit.lua: "); ok {
			line = part(limitText, name)
		} else if name, ok := strings.CutPrefix(line, "--{ smooth.lua: "); ok {
			line = part(smoothText, name)
		}
		whole.WriteString(line)
	}
	sum := sha1.Sum([]byte(whole.String()))
	return script{whole.String(), hex.EncodeToString(sum[:])}
}

// part returns the lines of a text from the opening brace with a name to the closing one.
func part(text, name string) string {
	name = strings.TrimSuffix(name, " }\n")
	var part strings.Builder
	depth := 0
	for line := range strings.Lines(text) {
		switch brace := strings.TrimSpace(line); {
		case depth == 0 && brace == "--{ "+name, depth > 0 && strings.HasPrefix(brace, "--{ "):
			depth++
		case depth > 0 && brace == "--}":
			if depth--; depth == 0 {
				return part.String()
			}
		case depth > 0:
			part.WriteString(line)
		}
	}
	panic("redislimit: no script has a part " + name) // a test runs all scripts
}

// script returns the script that the command calls.
func (cmd *command) script() *script {
	switch first := cmd.groups[0]; {
	case first.code == opTakeAll:
		return &groupScript
	case first.code == opTake && first.index == indexNotNeeded && engine.Of(first.plan).Smooth():
		return &smoothScript
	}
	return &limitScript
}

// call returns the front of the arguments.
func (cmd *command) call(args []any) []any {
	s := cmd.script()
	if cmd.eval {
		return append(args, "eval", s.text)
	}
	return append(args, "evalsha", s.digest)
}
