-- Imports of files into this store, by the SHA-256 of the file. The tables before `table_name` are written, and `rows_done` rows of
-- `table_name`. While `finished_at` is NULL the store is not whole, and only the same import goes on.
CREATE TABLE imports (
    file_sha256 TEXT PRIMARY KEY,
    table_name TEXT NOT NULL,
    rows_done BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    finished_at BIGINT
);
