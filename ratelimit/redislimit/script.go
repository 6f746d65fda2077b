package redislimit

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed format.lua
var formatText string

//go:embed fast.lua
var fastText string

//go:embed lease.lua
var leaseText string

//go:embed rules.lua
var rulesText string

//go:embed operations.lua
var operationsText string

// scriptFiles are the files of the script, in the order in which Redis runs them.
var scriptFiles = []struct{ name, text string }{
	{"format.lua", formatText}, {"fast.lua", fastText}, {"lease.lua", leaseText}, {"rules.lua", rulesText}, {"operations.lua", operationsText},
}

// script is the text of the script, and scriptDigest the name by which EVALSHA knows it.
var (
	script       = formatText + fastText + leaseText + rulesText + operationsText
	scriptDigest = digest(script)
)

func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

var scriptLine = regexp.MustCompile(`user_script:(\d+)`)

// explain names the file and the line of the script in the text of an error of Redis, or what
// it lacks: Redis 6 cannot set and get a key at once.
func explain(text string) string {
	if strings.Contains(text, "syntax error") {
		return text + ": the server is too old; use Redis 7.0 or newer, or Valkey"
	}
	return scriptLine.ReplaceAllStringFunc(text, func(place string) string {
		line, _ := strconv.Atoi(scriptLine.FindStringSubmatch(place)[1])
		for _, file := range scriptFiles {
			lines := strings.Count(file.text, "\n")
			if line <= lines {
				return fmt.Sprintf("%s:%d", file.name, line)
			}
			line -= lines
		}
		return place
	})
}

// call returns the front of the arguments.
func (cmd *command) call(args []any) []any {
	if cmd.eval {
		return append(args, "eval", script)
	}
	return append(args, "evalsha", scriptDigest)
}
