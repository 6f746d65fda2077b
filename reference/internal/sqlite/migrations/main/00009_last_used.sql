-- +goose Up

-- Microseconds since 1970 in UTC.
ALTER TABLE keys ADD COLUMN last_used INTEGER;
