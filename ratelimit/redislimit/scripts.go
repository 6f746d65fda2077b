package redislimit

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
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
//	prefix{tag}!digest    for the mark of a charge that was made, and for a subject's note
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

// warnOfEviction warns of servers that evict keys.
func (s *sender) warnOfEviction() {
	ctx := context.Background()
	switch client := s.client.(type) {
	case *redis.ClusterClient:
		_ = client.ForEachMaster(ctx, s.checkEviction)
	case *redis.Client:
		_ = s.checkEviction(ctx, client)
	}
}

// checkEviction checks one server, and warns if its policy is another one than the last time. A
// server that does not tell its policy, such as to a user without the right to INFO, is passed
// over.
func (s *sender) checkEviction(ctx context.Context, client *redis.Client) error {
	info := client.InfoMap(ctx, "memory").Val()["Memory"] // empty after an error
	policy := info["maxmemory_policy"]
	if policy == "" || info["maxmemory"] == "0" {
		policy = "noeviction"
	}
	if before, _ := s.policies.Swap(client.Options().Addr, policy); policy != "noeviction" && policy != before {
		s.logger.WarnContext(ctx, "redislimit: Redis evicts keys when its memory is full, "+
			"which grants quotas twice and forgets bans: set maxmemory-policy to noeviction",
			"server", client.Options().Addr, "maxmemory-policy", policy)
	}
	return nil
}
