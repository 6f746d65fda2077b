-- +goose Up

-- Texts are ordered and compared by their bytes, whatever the collation of the database.

-- The oldest version of this schema whose programs work with the tables as they are. A
-- migration that an older program cannot live with raises it.
CREATE TABLE petstore_schema (
    only_row boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (only_row),
    oldest   bigint  NOT NULL
);
INSERT INTO petstore_schema (oldest) VALUES (1);

CREATE TABLE pets (
    id          bigint NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name        text   COLLATE "C" NOT NULL CHECK (name <> ''),
    category_id bigint NOT NULL,
    status      text   COLLATE "C" NOT NULL CHECK (status IN ('available', 'pending', 'sold'))
);

-- For a page of one status, in order.
CREATE INDEX pets_by_status ON pets (status, id);

-- Only the SHA-256 of a key is kept.
CREATE TABLE keys (
    id        text   COLLATE "C" NOT NULL PRIMARY KEY,
    digest    bytea  NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
    last_four text   COLLATE "C" NOT NULL CHECK (octet_length(last_four) = 4),
    name      text   COLLATE "C" NOT NULL,
    owner     text   COLLATE "C" NOT NULL CHECK (owner <> ''),
    plan      text   COLLATE "C" NOT NULL CHECK (plan <> ''),
    quotas    text[] COLLATE "C" NOT NULL, -- of a custom plan
    limits    text[] COLLATE "C" NOT NULL, -- of the key alone
    created   timestamptz NOT NULL,
    expires   timestamptz,
    revoked   timestamptz
);

CREATE TABLE audit (
    id     bigint NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at     timestamptz NOT NULL,
    actor  text   COLLATE "C" NOT NULL CHECK (actor <> ''),
    source text   COLLATE "C" NOT NULL, -- the address that the request came from, or ''
    action text   COLLATE "C" NOT NULL CHECK (action <> ''),
    target text   COLLATE "C" NOT NULL CHECK (target <> ''),
    detail text   COLLATE "C" NOT NULL
);
CREATE INDEX audit_by_time ON audit (at, id);

-- Days are those of UTC.
CREATE TABLE daily_use (
    owner   text   COLLATE "C" NOT NULL CHECK (owner <> ''),
    day     date   NOT NULL,
    allowed bigint NOT NULL CHECK (allowed >= 0),
    denied  bigint NOT NULL CHECK (denied >= 0),
    PRIMARY KEY (owner, day)
);
CREATE INDEX daily_use_by_day ON daily_use (day);

CREATE TABLE deprecated_use (
    operation text   COLLATE "C" NOT NULL,
    owner     text   COLLATE "C" NOT NULL,
    count     bigint NOT NULL CHECK (count > 0),
    last      timestamptz NOT NULL,
    PRIMARY KEY (operation, owner)
);

CREATE TABLE deprecated_use_by_day (
    day       date   NOT NULL,
    operation text   COLLATE "C" NOT NULL,
    owner     text   COLLATE "C" NOT NULL,
    count     bigint NOT NULL CHECK (count > 0),
    PRIMARY KEY (day, operation, owner)
);

CREATE TABLE idempotency_keys (
    owner       text   COLLATE "C" NOT NULL CHECK (owner <> ''),
    key         text   COLLATE "C" NOT NULL CHECK (key <> ''),
    fingerprint bytea  NOT NULL CHECK (octet_length(fingerprint) = 32),
    pet         bigint NOT NULL REFERENCES pets (id) ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    PRIMARY KEY (owner, key)
);

-- For those that have expired, and for a pet that is deleted.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at);
CREATE INDEX idempotency_keys_by_pet ON idempotency_keys (pet);
