-- The channel's message that a root answers.
ALTER TABLE runs ADD COLUMN message TEXT NOT NULL DEFAULT '';

-- One row per session that roots run in: whose it is, and the conversation that it is part of.
CREATE TABLE sessions (
    session      TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    user         TEXT NOT NULL,
    name         TEXT NOT NULL,
    role         TEXT NOT NULL DEFAULT '',
    title        TEXT NOT NULL DEFAULT '',
    channel      TEXT NOT NULL DEFAULT '',
    created_at   REAL NOT NULL,
    used_at      REAL NOT NULL
) STRICT;

CREATE INDEX sessions_by_conversation ON sessions (conversation);
CREATE INDEX sessions_by_use ON sessions (user, used_at);

-- Messages that were accepted, in that order. Pending: neither `run` nor `dropped` says anything.
CREATE TABLE inbound (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    message        TEXT NOT NULL UNIQUE,
    conversation   TEXT NOT NULL,
    channel        TEXT NOT NULL,
    content        TEXT NOT NULL,
    sent_at        REAL NOT NULL,
    type           TEXT NOT NULL,
    caller         TEXT NOT NULL,
    parent_session TEXT,
    user           TEXT NOT NULL,
    client_id      TEXT NOT NULL,
    manner         TEXT NOT NULL,
    wishes         TEXT NOT NULL,
    run            TEXT NOT NULL DEFAULT '',
    dropped        TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE UNIQUE INDEX inbound_by_client ON inbound (conversation, user, client_id) WHERE client_id <> '';
CREATE INDEX inbound_untaken ON inbound (conversation) WHERE run = '';
CREATE INDEX inbound_pending ON inbound (number) WHERE run = '' AND dropped = '';
CREATE INDEX inbound_by_run ON inbound (run) WHERE run <> '';

-- Runs that were deleted and whose events still have to be. Nearly always empty.
CREATE TABLE forgotten (
    run TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- What there was before belongs to the owner; the first root of each session describes it.
INSERT INTO sessions (session, conversation, user, name, title, channel, created_at, used_at)
SELECT
    first.session, first.session, 'owner', first.session,
    coalesce((
        SELECT title FROM runs WHERE session = first.session AND parent = '' AND title <> ''
        ORDER BY number LIMIT 1
    ), ''),
    coalesce((
        SELECT json_extract(body, '$.channel') FROM events
        WHERE run = first.run AND kind = 'run_started' AND json_valid(body)
        ORDER BY seq LIMIT 1
    ), ''),
    first.started_at, first.used_at
FROM (
    SELECT session, run, started_at, min(number), (
        SELECT max(started_at) FROM runs AS latest WHERE latest.session = runs.session AND parent = ''
    ) AS used_at
    FROM runs WHERE parent = '' GROUP BY session
) AS first;
