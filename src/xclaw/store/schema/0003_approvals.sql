-- Questions to people are events. These find them without a look at all the others.
CREATE INDEX events_asked ON events (run) WHERE kind = 'approval_asked';
CREATE INDEX events_by_approval ON events (json_extract(body, '$.approval_id')) WHERE kind = 'approval_asked';

-- What was answered, by whom: stored before the run is told, so that a run which nobody drives finds it.
CREATE TABLE approval_answers (
    approval  TEXT PRIMARY KEY,
    run       TEXT NOT NULL,
    session   TEXT NOT NULL, -- the root's: where "session" holds
    agent     TEXT NOT NULL,
    decision  TEXT NOT NULL,
    rule      TEXT NOT NULL,
    body      TEXT NOT NULL, -- the ApprovalAnswered event
    at        REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_answers_by_session ON approval_answers (session, agent);
CREATE INDEX approval_answers_by_run ON approval_answers (run);

CREATE TRIGGER approval_answers_go_with_their_run AFTER DELETE ON runs
BEGIN
    DELETE FROM approval_answers WHERE run = OLD.run;
END;
