-- Where the journal stood when a message was given up: whoever watches from there or before is told of it.
ALTER TABLE inbound ADD COLUMN dropped_after INTEGER NOT NULL DEFAULT 0;
CREATE INDEX inbound_dropped ON inbound (conversation, dropped_after) WHERE dropped <> '';
