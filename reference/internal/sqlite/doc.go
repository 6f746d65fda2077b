// Package sqlite stores the data of the service in a SQLite file. While it is open,
// SQLite has two files of its own beside it (-wal and -shm).
//
//	s, err := sqlite.Open(ctx, "petstore.db", sqlite.Options{})
//	…
//	defer s.Close()
//	pet, err := s.CreatePet(ctx, store.NewPet{Name: "Rex", CategoryID: 1})
//
// # Durability
//
// The database is in WAL mode with synchronous=FULL: a write is synced to the disk
// before it is acknowledged. A sync takes far longer than an insert, so writes that
// arrive during a transaction wait for it, and then share the next transaction and its
// sync. No write waits for others to arrive. Each write of a shared transaction has its
// own outcome.
//
// # Processes
//
// Any number of processes may have the file open, such as a server and the command
// that creates a key. Each sees what the others have committed. SQLite has one writer
// at a time: another one waits, up to Options.BusyTimeout. The file must be on a local
// disk, as WAL requires.
//
// [Store.PetsVersion] tells within nanoseconds whether any of them has written since an
// earlier call, so that a server can keep what it has read.
//
// Writes to a file that was deleted or replaced while it is open would be lost without
// an error. Therefore writes and [Store.Ping] check that the paths still name the files
// that were opened, and fail until the original files are back.
//
// # Limiter state
//
// The state of the embedded rate limiter is in a file of its own; see [Usage].
// Every second thousands of its records change, and the last changes may be lost. A pet
// must not be lost. In one file, the commit of a pet would wait for those records, and its
// sync would write them to the disk too.
//
// # Backups
//
// [Backup] copies the database while servers run. [Check] examines a file. [Restore]
// replaces the content of a database that no process has open by that of a backup, in
// one transaction, and makes no key valid again:
//
//	r, err := sqlite.Backup(ctx, "petstore.db", "backup.db", sqlite.Options{})
//
// [Export] reads everything in a file, for a move to PostgreSQL.
//
// # Upgrades
//
// A file of an older version is upgraded when it is opened, in atomic steps. Before that
// it is copied to a file beside it, such as petstore.db.v3-20261122T101500.000Z.backup;
// if that fails, the file is not changed. Limiter state is upgraded without a copy, in one
// transaction. A file of a newer version or of another program is refused and not changed.
package sqlite
