package memory

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Open returns an engine that keeps usage and bans in a file over a restart, and two functions.
// The first writes the file, and the second writes it a last time and closes it:
//
//	limiter, save, closeFile, err := memory.Open("/var/lib/pets/usage", memory.Options{})
//	...
//	err = closeFile() // when the service has stopped serving
//
// Without the file the engine has no subjects. Open returns an error that names the file if it
// cannot be read, is empty, cut off or another kind of file, or has more than there is room for
// under Options.MaxSubjects. So it does if the folder does not exist or cannot be written to.
// If the error is about the system, it wraps an [fs.PathError]. The file has the
// [Limiter.Secret] of the engine; a new one can be read only by its owner. If Options.Secret is
// set, it must be the same. A symbolic link stays, and the file that it leads to is replaced.
//
// One engine at a time uses a file: until it is closed or its process ends, Open returns an error
// that wraps [ratelimit.ErrUnavailable] to others. That is what the empty file usage.lock beside it
// is for, which stays. Solaris, AIX, Plan 9 and WebAssembly have no such lock.
//
// What is counted after the last save is lost. Against crashes call save at intervals, such as
// every second. It replaces the file in one step, or leaves it as it is and returns an error. Until
// then the new one is beside it, as usage.123.saving; the next Open removes what a killed process
// has left. If nothing has changed since the last save, it writes nothing. Otherwise it writes all
// subjects, about 90 bytes each. A million take about a second, and 350 MB while Open reads them.
// Both functions may be called at any time, also concurrently, but [Limiter.Save] must not be.
// If the last save fails, the file stays open, and closeFile can be called again.
func Open(file string, opts Options) (l *Limiter, save, closeFile func() error, err error) {
	path, err := followed(file)
	f := &usageFile{path: path}
	if err == nil {
		err = f.open(opts)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("memory: usage in %s: %w", file, err)
	}
	return f.limiter, f.save, f.close, nil
}

// A usageFile keeps the state of an engine.
type usageFile struct {
	path    string
	limiter *Limiter

	mu      sync.Mutex
	lock    *os.File // nil: closed
	unsaved bool     // the last save failed, or there is no file
}

// A fileState is the content of a file.
type fileState struct {
	Secret  []byte
	Records []Record
}

// errInUse is the error for a file that another process has locked.
var errInUse = fmt.Errorf("%w: another process uses the file", ratelimit.ErrUnavailable)

// open locks the file and makes the engine that it describes.
func (f *usageFile) open(opts Options) (err error) {
	if f.lock, err = lockFile(f.path + ".lock"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.lock.Close()
		}
	}()
	if err := writable(f.path); err != nil {
		return err
	}
	removeUnfinished(f.path)
	state, err := readState(f.path)
	if f.unsaved = errors.Is(err, fs.ErrNotExist); err != nil && !f.unsaved {
		return err
	}
	if opts.Secret == nil {
		opts.Secret = state.Secret
	}
	if f.limiter, err = New(opts); err != nil {
		return err
	}
	f.limiter.holds.live = map[uint64]map[string]ratelimit.Decision{}
	if err := f.limiter.Load(state.Records); err != nil {
		return err
	}
	if lost := f.limiter.Stats().Refused; lost > 0 {
		return fmt.Errorf("%d records have no place under Options.MaxSubjects", lost)
	}
	return nil
}

func readState(path string) (s fileState, err error) {
	data, err := os.ReadFile(path)
	switch {
	case err != nil:
		return s, err
	case len(data) == 0:
		return s, errors.New("the file is empty")
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("the file is damaged: %w", err)
	}
	if len(s.Secret) == 0 { // but settings, for instance, which save would replace
		return s, errors.New("it is not a file of usage")
	}
	return s, nil
}

func (f *usageFile) save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write()
}

func (f *usageFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return nil
	}
	if err := f.write(); err != nil {
		return err
	}
	_ = f.lock.Close()
	f.lock = nil
	return nil
}

// write replaces the file if something has changed. It needs mu.
func (f *usageFile) write() error {
	if f.lock == nil {
		return fmt.Errorf("memory: saving usage: %s is closed", f.path)
	}
	for range f.limiter.portions(true) { // which marks all as saved
		f.unsaved = true
	}
	if !f.unsaved {
		return nil
	}
	if err := replaceFile(f.path, f.limiter.writeState); err != nil {
		return fmt.Errorf("memory: saving usage: %w", err)
	}
	f.unsaved = false
	return nil
}

// writeState writes a fileState. One record is encoded at a time, since all of them take several
// times as much memory as the engine.
func (l *Limiter) writeState(to io.Writer) error {
	w, before := bufio.NewWriter(to), ""
	records := json.NewEncoder(w)
	_, _ = fmt.Fprintf(w, `{"Secret":%q,"Records":[`, base64.StdEncoding.EncodeToString(l.Secret()))
	for portion := range l.saved() {
		for i := range portion {
			_, _ = w.WriteString(before)
			if err := records.Encode(&portion[i]); err != nil {
				return err
			}
			before = ","
		}
	}
	_, _ = w.WriteString("]}\n")
	return w.Flush() // the first error of the writer
}

// writable returns an error if replaceFile could not make a file. Otherwise the service would
// find out when it stops.
func writable(file string) error {
	f, err := unfinished(file)
	if err != nil {
		return err
	}
	return cmp.Or(f.Close(), os.Remove(f.Name()))
}

// replaceFile writes a file so that it has the old content or the new one, also after a crash.
func replaceFile(file string, write func(io.Writer) error) error {
	f, err := unfinished(file)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is there only after an error
	if err = cmp.Or(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// unfinished makes a file of its own that is to replace another one.
func unfinished(file string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*"+saving)
}

// saving is how the names of such files end.
const saving = ".saving"

// removeUnfinished removes what saves have left that a crash has ended. What it cannot see stays.
func removeUnfinished(file string) {
	entries, _ := os.ReadDir(filepath.Dir(file))
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(file)+".")
		number, unfinished := strings.CutSuffix(rest, saving)
		if _, err := strconv.ParseUint(number, 10, 64); ours && unfinished && err == nil {
			_ = os.Remove(filepath.Join(filepath.Dir(file), e.Name()))
		}
	}
}

// followed returns the file that a path leads to through symbolic links, whether or not it is
// there.
func followed(path string) (string, error) {
	folder, name := filepath.Split(path)
	if name == "" {
		return "", fmt.Errorf("%q is not the name of a file", path)
	}
	_, err := os.Stat(path)
	switch {
	case err == nil:
		return filepath.EvalSymlinks(path)
	case !errors.Is(err, fs.ErrNotExist): // such as links that form a circle
		return "", err
	}
	if target, err := os.Readlink(path); err == nil {
		if filepath.IsAbs(target) {
			return followed(target)
		}
		return followed(folder + target)
	}
	if folder == "" {
		folder = "."
	}
	folder, err = filepath.EvalSymlinks(folder)
	return filepath.Join(folder, name), err
}
