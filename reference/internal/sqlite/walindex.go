package sqlite

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// A walIndex watches the header of the WAL index, the -shm file. Each commit of any
// process writes the header after its sync and before it is acknowledged, and SQLite
// compares the header at the beginning of each read to find out whether its cache is
// still valid. Here it is the same comparison. It takes some 100 nanoseconds, because the
// header is in shared memory. "PRAGMA data_version" would take twenty times as long,
// and a connection that only one caller can use at a time.
//
// Source: https://www.sqlite.org/walformat.html, section 2.1, and [xShmMap].
//
// [xShmMap]: https://www.sqlite.org/c3ref/io_methods.html
type walIndex struct {
	mu     sync.RWMutex // held while the header is in use
	header *[2]walHeader
	tls    *libc.TLS
	db     uintptr // a connection that keeps the header in memory

	last atomic.Pointer[numbered]
}

// A walHeader is the content of the header. The header is in the file twice. A writer
// changes the second copy first, and a reader that reads the first one first knows from
// two equal copies that no write was going on.
type walHeader [6]uint64

// numbered is a header with a number of its own.
type numbered struct {
	header walHeader
	number uint64
}

// shmRegion is the size of the unit in which SQLite maps the WAL index, in bytes.
const shmRegion = 32 << 10

// openWALIndex opens the index of a database in WAL mode.
func (f file) openWALIndex() (_ *walIndex, err error) {
	w := &walIndex{tls: libc.NewTLS()}
	defer func() {
		if err != nil {
			w.close()
			err = fmt.Errorf("open database %s: watch its log: %w", f.name, err)
		}
	}()
	out := w.tls.Alloc(int(unsafe.Sizeof(uintptr(0))))
	defer w.tls.Free(int(unsafe.Sizeof(uintptr(0))))
	name, err := libc.CString(f.path)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(w.tls, name)
	// A read makes SQLite open the log. It needs no text of its own.
	query, err := libc.CString("PRAGMA schema_version")
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(w.tls, query)

	rc := sqlite3.Xsqlite3_open_v2(w.tls, name, out, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_PRIVATECACHE, 0)
	w.db = *(*uintptr)(pointer(out))
	if rc == sqlite3.SQLITE_OK {
		rc = sqlite3.Xsqlite3_busy_timeout(w.tls, w.db, int32(f.busy.Milliseconds()))
	}
	if rc == sqlite3.SQLITE_OK {
		rc = sqlite3.Xsqlite3_exec(w.tls, w.db, query, 0, 0, 0)
	}
	if rc == sqlite3.SQLITE_OK {
		rc = w.mapHeader(out)
	}
	if rc != sqlite3.SQLITE_OK {
		return nil, fmt.Errorf("SQLite's result code is %d", rc)
	}
	return w, nil
}

// mapHeader finds the header in memory. It uses the memory at out.
func (w *walIndex) mapHeader(out uintptr) int32 {
	if rc := sqlite3.Xsqlite3_file_control(w.tls, w.db, 0, sqlite3.SQLITE_FCNTL_FILE_POINTER, out); rc != sqlite3.SQLITE_OK {
		return rc
	}
	opened := *(*uintptr)(pointer(out))
	methods := (*sqlite3.Tsqlite3_io_methods)(pointer((*sqlite3.Tsqlite3_file)(pointer(opened)).FpMethods))
	if methods.FiVersion < 2 || methods.FxShmMap == 0 {
		return sqlite3.SQLITE_CANTOPEN
	}
	shmMap := *(*func(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32)(unsafe.Pointer(&struct{ uintptr }{methods.FxShmMap}))
	const extend = 0
	if rc := shmMap(w.tls, opened, 0, shmRegion, extend, out); rc != sqlite3.SQLITE_OK {
		return rc
	}
	if w.header = (*[2]walHeader)(pointer(*(*uintptr)(pointer(out)))); w.header == nil {
		return sqlite3.SQLITE_CANTOPEN
	}
	return sqlite3.SQLITE_OK
}

// pointer returns the pointer to memory of SQLite, which the garbage collector neither
// owns nor moves.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// version returns a number for the header. See [store.PetsVersioner].
func (w *walIndex) version() (uint64, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.header == nil {
		return 0, false
	}
	var now, again walHeader
	load(&now, &w.header[0])
	load(&again, &w.header[1])
	// Copies that differ are of a commit that is going on, or whose process was killed:
	// then the next read repairs the index. An empty header is repaired likewise.
	if now != again || now == (walHeader{}) {
		return 0, false
	}
	for {
		last := w.last.Load()
		if last != nil && last.header == now {
			return last.number, true
		}
		next := &numbered{header: now, number: 1}
		if last != nil {
			next.number = last.number + 1
		}
		if w.last.CompareAndSwap(last, next) {
			return next.number, true
		}
	}
}

// load copies a header. Its reads stay in order.
func load(to, from *walHeader) {
	for i := range from {
		to[i] = atomic.LoadUint64(&from[i])
	}
}

// close waits for running calls of version.
func (w *walIndex) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tls == nil {
		return nil
	}
	rc := sqlite3.Xsqlite3_close_v2(w.tls, w.db)
	w.tls.Close()
	w.tls, w.header = nil, nil
	if rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("close the watch of the log: SQLite's result code is %d", rc)
	}
	return nil
}
