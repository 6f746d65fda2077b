package memory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
)

// Open returns an engine that keeps usage and bans in a file over a restart, and a function
// that writes the file:
//
//	engine, save, err := memory.Open("/var/lib/pets/usage", memory.Options{})
//	...
//	err = save() // when the service has stopped serving
//
// Without the file the engine has no subjects. Open returns an error that names the file if it
// cannot be read or is damaged, or if the folder does not exist or cannot be written to, so
// that usage is never lost unnoticed. Each process needs a file of its own. The file has the
// [Limiter.Secret] of the engine; only its owner may read it. If Options.Secret is set, it must
// be the same. A symbolic link stays, and the file that it leads to is replaced.
//
// What is counted after the last save is lost. Against crashes call save at intervals, such as
// a minute, or store what changes every second with [Limiter.Save]. The function save replaces
// the file in one step, or leaves it as it is and returns an error. Until then the new one is
// beside it, as usage.123.saving; the next Open removes what a killed process has left. The function
// may be called at any time, also concurrently. It writes all subjects, about 90 bytes each, and
// allocates several times as much.
func Open(file string, opts Options) (l *Limiter, save func() error, err error) {
	var s fileState
	data, err := os.ReadFile(file)
	if err == nil {
		if err = json.Unmarshal(data, &s); err == nil && len(s.Secret) == 0 {
			err = errors.New("it is not a file of usage") // but settings, for instance, which save would replace
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("memory: reading usage from %s: %w", file, err)
	}
	file = followed(file)
	if err := writable(file); err != nil {
		return nil, nil, fmt.Errorf("memory: usage cannot be saved in %s: %w", file, err)
	}
	removeUnfinished(file)
	if opts.Secret == nil {
		opts.Secret = s.Secret
	}
	if l, err = New(opts); err == nil {
		err = l.Load(s.Records)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w (usage is in %s)", err, file)
	}
	var mu sync.Mutex
	return l, func() error {
		mu.Lock()
		defer mu.Unlock()
		data, err := json.Marshal(fileState{l.Secret(), l.Records(0, math.MaxUint64)})
		if err == nil {
			err = replaceFile(file, data)
		}
		if err != nil {
			return fmt.Errorf("memory: saving usage: %w", err)
		}
		return nil
	}, nil
}

// A fileState is the content of a file.
type fileState struct {
	Secret  []byte
	Records []Record
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
func replaceFile(file string, content []byte) error {
	f, err := unfinished(file)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is there only after an error
	_, err = f.Write(content)
	if err = cmp.Or(err, f.Sync(), f.Close()); err != nil {
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

// removeUnfinished removes what saves have left that a crash has ended. If another process is
// just saving, its save fails: the name of its file is not used again.
func removeUnfinished(file string) {
	names, _ := filepath.Glob(file + ".*" + saving) // what it does not find stays
	for _, name := range names {
		_ = os.Remove(name)
	}
}

// followed returns the file that a chain of symbolic links leads to, whether or not it is there.
func followed(file string) string {
	target, err := os.Readlink(file)
	if err != nil {
		return file // it is not a link
	}
	if !filepath.IsAbs(target) {
		target = filepath.Dir(file) + string(filepath.Separator) + target
	}
	return followed(target)
}
