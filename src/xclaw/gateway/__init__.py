"""One door for every request: dispatch, routing, sessions, channels, the server."""
