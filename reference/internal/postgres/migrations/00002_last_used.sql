-- +goose Up

ALTER TABLE keys ADD COLUMN last_used timestamptz;
