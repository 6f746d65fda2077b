// Package sqlite keeps the service's data in SQLite, in one file beside which
// SQLite keeps two of its own (-wal and -shm) while the file is open.
//
//	s, err := sqlite.Open(ctx, "petstore.db", sqlite.Options{})
//	…
//	defer s.Close()
//	pet, err := s.CreatePet(ctx, store.NewPet{Name: "Rex", CategoryID: 1})
//
// # Durability
//
// The database is in WAL mode with synchronous=FULL: a write is synced to the
// disk before it is acknowledged. A sync takes far longer than an insert, so
// writes that arrive while one is under way wait, and then share the next
// transaction and its sync. Nothing is delayed to gather company; a lone write
// is committed at once. Each write of a shared transaction has its own outcome.
//
// # Processes
//
// Any number of processes may have the file open, such as a server and the
// command that makes a key; each sees at once what the others have committed.
// SQLite has one writer at a time: another one waits, up to Options.BusyTimeout. The
// file must be on a local disk, as WAL needs.
//
// A file that is deleted or replaced while it is open would swallow writes without
// an error. Writes and [Store.Ping] therefore look whether the paths still name the
// files that were opened, and fail if not, until the original files are back.
//
// # Limiter state
//
// The state of the embedded rate limiter is in a file of its own; see [Usage].
// It changes in thousands of scattered rows every second and may lose the last
// of them, while a pet is one row that may not be lost. In one file a pet's
// commit would wait for the rows to be written, and its sync would take them
// along to the disk.
//
// # Upgrades
//
// A file of an older version is upgraded when it is opened, in steps that take
// place as a whole or not at all. A file of a newer version is refused, as is
// one that another program made; neither is changed.
package sqlite
