"""Work on a user's own directory: snapshots, private trees, merges (SPEC F4). What is here and how it keeps the
user's files out of danger is told in docs/projects.md."""
