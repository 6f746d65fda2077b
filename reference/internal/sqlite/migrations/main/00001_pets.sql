-- +goose Up

-- "PETS": marks the file as a database of this program. A file without tables
-- or with this mark is opened, any other is left alone.
PRAGMA application_id = 0x50455453;

-- AUTOINCREMENT never gives an id a second time, even after the pet with the
-- largest one is deleted.
CREATE TABLE pets (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL CHECK (name <> ''),
    category_id INTEGER NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('available', 'pending', 'sold'))
) STRICT;

-- Every index ends in the id, so this one serves a page of one status in order.
CREATE INDEX pets_by_status ON pets (status);
