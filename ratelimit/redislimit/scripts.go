package redislimit

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
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
	case first.code == opTake && first.index == indexNotNeeded && of(first.plan).Smooth():
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

// partitions is how many hash tags the subjects are spread over. A subject's key,
// and the index of bans that it would be listed in, are in the slot of its tag.
// The slots of these tags are spread evenly over up to 32 masters, within a
// tenth; a list of all bans reads one index for each.
const partitions = 1024

// maxName is the longest subject that its key holds as it is, in bytes.
const maxName = 128

// keys makes the names of keys:
//
//	prefix{tag}:subject   for a subject of at most maxName bytes
//	prefix{tag}#digest    for a longer one, SHA-256 in hexadecimal
//	prefix{tag}           for the index of bans
//	prefix{tag}!digest    for the mark of a charge that was made
//
// The prefix has no brace, so that the first ones are those of the tag whatever
// bytes the subject has.
type keys struct {
	heads [partitions]string // prefix{tag}:
}

func newKeys(prefix string) *keys {
	k := new(keys)
	for p := range partitions {
		k.heads[p] = fmt.Sprintf("%s{%03x}:", prefix, p)
	}
	return k
}

// partition returns where the subject belongs. It is FNV-1a, folded. Every
// process must come to the same result.
func partition(subject string) int {
	h := uint32(2166136261)
	for i := range len(subject) {
		h = (h ^ uint32(subject[i])) * 16777619
	}
	return int((h ^ h>>16) % partitions)
}

func (k *keys) subject(partition int, subject string) string {
	head := k.heads[partition]
	if len(subject) <= maxName {
		return head + subject
	}
	digest := sha256.Sum256([]byte(subject))
	return head[:len(head)-1] + "#" + hex.EncodeToString(digest[:])
}

// mark returns the key of a subject's mark. Another subject may use the same mark, and
// a mark may be long.
func (k *keys) mark(partition int, subject, mark string) string {
	of := sha256.Sum256([]byte(subject))
	digest := sha256.Sum256(append(of[:], mark...))
	return k.index(partition) + "!" + hex.EncodeToString(digest[:16])
}

func (k *keys) index(partition int) string {
	head := k.heads[partition]
	return head[:len(head)-1]
}

// An evictionCheck warns of servers that evict keys.
type evictionCheck struct {
	client redis.UniversalClient
	logger *slog.Logger
	once   sync.Once
}

// start runs the check in a goroutine, the first time that it is called.
func (e *evictionCheck) start() {
	e.once.Do(func() { go e.run() })
}

func (e *evictionCheck) run() {
	ctx := context.Background()
	switch client := e.client.(type) {
	case *redis.ClusterClient:
		_ = client.ForEachMaster(ctx, e.server)
	case *redis.Ring:
		_ = client.ForEachShard(ctx, e.server)
	case *redis.Client:
		_ = e.server(ctx, client)
	}
}

// server checks one server. A server that does not tell its policy, such as to a user
// without the right to INFO, is passed over.
func (e *evictionCheck) server(ctx context.Context, client *redis.Client) error {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return nil // nothing depends on it
	}
	policy, limit := field(info, "maxmemory_policy"), field(info, "maxmemory")
	if policy != "" && policy != "noeviction" && limit != "0" {
		e.logger.WarnContext(ctx, "redislimit: Redis evicts keys when its memory is full, "+
			"which grants quotas twice and forgets bans: set maxmemory-policy to noeviction",
			"server", client.Options().Addr, "maxmemory-policy", policy)
	}
	return nil
}

// field returns the value of a field in a reply to INFO, or "".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
