-- One row per run: the address of its events, and what RunStarted, RunResumed and RunEnded say.
CREATE TABLE runs (
    number     INTEGER PRIMARY KEY,
    run        TEXT NOT NULL UNIQUE,
    root       TEXT NOT NULL,
    parent     TEXT NOT NULL,
    session    TEXT NOT NULL,
    agent      TEXT NOT NULL DEFAULT '',
    title      TEXT NOT NULL DEFAULT '',
    owner      TEXT NOT NULL,
    started_at REAL NOT NULL,
    ended_at   REAL,
    outcome    TEXT
) STRICT;

CREATE INDEX runs_by_root ON runs (root);
CREATE INDEX runs_by_session ON runs (session);
CREATE INDEX runs_open ON runs (owner) WHERE ended_at IS NULL;

-- Every event. AUTOINCREMENT: an id is never given twice, so a client can resume from one.
CREATE TABLE events (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    run  TEXT NOT NULL,
    seq  INTEGER NOT NULL,
    at   REAL NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (run, seq)
) STRICT;

-- Processes that drive runs. Whether one lives is told by its lock file, not by this row.
CREATE TABLE owners (
    owner      TEXT PRIMARY KEY,
    pid        INTEGER NOT NULL,
    host       TEXT NOT NULL,
    socket     TEXT NOT NULL,
    started_at REAL NOT NULL
) STRICT;
