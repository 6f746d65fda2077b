-- +goose Up

-- Days are numbered from 1970-01-01 UTC. The day comes first, because the rows of
-- today are written all the time, and those of the oldest day are removed.
CREATE TABLE daily_use (
    day     INTEGER NOT NULL,
    owner   TEXT    NOT NULL CHECK (owner <> ''),
    allowed INTEGER NOT NULL CHECK (allowed >= 0),
    denied  INTEGER NOT NULL CHECK (denied >= 0),
    PRIMARY KEY (day, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE deprecated_use_by_day (
    day       INTEGER NOT NULL,
    operation TEXT    NOT NULL,
    owner     TEXT    NOT NULL,
    count     INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (day, operation, owner)
) STRICT, WITHOUT ROWID;
