//go:build unix

package fleet

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

var must = testcheck.NoError

// A ledger is a file in which a member counts what became of its requests: what is counted is
// there when the member is killed. The members' clock is that of the server, and a request
// counts in the window in which it begins and ends, by a clock that package lease does
// not read.
type ledger []byte

// What is counted of a subject in a window.
const (
	admitted = iota
	denied
	crossing // admitted, and the next window began meanwhile
	unplaced // admitted, and more windows began meanwhile; or denied, and one began; or failed
	columns
)

const (
	windows    = 512
	cell       = 8
	ledgerSize = windows * columns * cell // of one subject
)

func ledgerFile(dir string, member int) string { return filepath.Join(dir, strconv.Itoa(member)) }

// openLedger opens the file of a member, which is made if there is none.
func openLedger(dir string, member int) (ledger, error) {
	f, err := os.OpenFile(ledgerFile(dir, member), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := ledgerSize * len(subjects)
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func (l ledger) at(subject int, window int64, column int) []byte {
	return l[ledgerSize*subject+(columns*int(window)+column)*cell:][:cell]
}

// add counts a request.
func (l ledger) add(subject int, window int64, column int) {
	b := l.at(subject, window, column)
	binary.NativeEndian.PutUint64(b, binary.NativeEndian.Uint64(b)+1)
}

// counts are what all members have counted of a subject in a window, in units.
type counts [columns]int64

// A book is the ledgers of all members.
type book struct {
	began   int64 // Unix seconds: the windows are numbered from then
	ledgers []ledger
}

func newBook(t *testing.T, dir string, members int, began int64) *book {
	b := &book{began: began}
	for i := range members {
		l, err := openLedger(dir, i)
		must(t, err)
		t.Cleanup(func() { must(t, syscall.Munmap(l)) })
		b.ledgers = append(b.ledgers, l)
	}
	return b
}

func (b *book) read(subject int, window int64) (sum counts) {
	for _, l := range b.ledgers {
		for c := range sum {
			sum[c] += int64(binary.NativeEndian.Uint64(l.at(subject, window, c))) * subjects[subject].cost
		}
	}
	return sum
}

// A verdict is about one window of a subject.
type verdict struct {
	*subject
	number int64 // since 1970
	counts       // a crossing admission is counted in the first of the two windows that has room
	room   int64 // units that the quotas allowed
	over   int64 // admitted without units
}

// left returns how many units could still have been used.
func (v *verdict) left() int64 {
	left := max(v.room-v.counts[admitted], 0)
	return left - left%v.cost
}

// verdicts calls visit with each window in which there were requests.
func (b *book) verdicts(visit func(verdict)) {
	for i := range subjects {
		s := &subjects[i]
		carried, used := int64(0), int64(0) // from the window before; in the longer window
		for w := range int64(windows) {
			v := verdict{subject: s, number: b.began/s.window + w, counts: b.read(i, w), room: s.limit}
			if v.number%longer == 0 {
				used = 0
			}
			v.room = min(v.room, max(s.longer-used, 0))
			v.counts[admitted] += carried
			v.over = max(v.counts[admitted]-v.room, 0)
			here := min(v.counts[crossing], v.left())
			v.counts[admitted] += here
			carried = v.counts[crossing] - here
			used += v.counts[admitted]
			if v.counts[admitted]+v.counts[denied] > 0 {
				visit(v)
			}
		}
	}
}
