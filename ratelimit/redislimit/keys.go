package redislimit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

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
//	prefix{tag}+...       for what is held of a subject: as its key goes on after the tag
//	prefix{tag}!digest    for the mark of a charge that was made, and for a subject's note
//
// The prefix has no brace, so that the first ones are those of the tag whatever
// bytes the subject has.
type keys struct {
	indexes [partitions]string // prefix{tag}
}

func newKeys(prefix string) *keys {
	k := new(keys)
	for p := range partitions {
		k.indexes[p] = fmt.Sprintf("%s{%03x}", prefix, p)
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
	if len(subject) <= maxName {
		return k.indexes[partition] + ":" + subject
	}
	digest := sha256.Sum256([]byte(subject))
	return k.indexes[partition] + "#" + hex.EncodeToString(digest[:])
}

// mark returns the key of a subject's mark. Another subject may use the same mark, and
// a mark may be long.
func (k *keys) mark(partition int, subject, mark string) string {
	of := sha256.Sum256([]byte(subject))
	digest := sha256.Sum256(append(of[:], mark...))
	return k.index(partition) + "!" + hex.EncodeToString(digest[:16])
}

func (k *keys) holds(partition int, subject string) string {
	index := k.index(partition)
	return index + "+" + k.subject(partition, subject)[len(index):]
}

func (k *keys) index(partition int) string { return k.indexes[partition] }
