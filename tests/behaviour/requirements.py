"""What this release promises, by id. `test_requirements.py` checks that every id is covered by a test
that names it in a docstring, and that no test names an id that is not here.

`PROMISED` is whole in this release. Of `BEGUN` a part is; the sentence says which.
"""

PROMISED: dict[str, str] = {
    "A1": "Every request enters through Gateway.dispatch: session, router, then a resident or the orchestrator.",
    "A2": "A worker called by an agent answers with the bare result, one called by a user in natural language.",
    "A3": "Session ids say whose conversation it is: the client's, or derived from parent, worker and task.",
    "A4": "A channel gets delta, reply and error with the request's id and its own session id, and every event.",
    "A5": "Messages to one session are handled one at a time; sessions never see one another's data.",
    "A6": "Channels plug in behind one small interface; WebSocket, HTTP and users' own by name.",
    "B1": "Rules send one clear expert request straight to its expert; rules are data, shown, and can be added.",
    "B2": "Review, documentation, performance and security go to reviewer, writer, optimizer and skeptic.",
    "B3": "What wants code built, or has several steps, goes to the orchestrator; the request's own words decide.",
    "B4": "An optional router model is held to the agents' names; anything else falls back.",
    "B5": "Resident experts keep a session of their own, also over a restart; a mention addresses one.",
    "C1": "An agent is data, from a Markdown file or Python; a bad file gives file, line and reason.",
    "C2": "The orchestrator, five specialists and the agents of pipelines and debates are built in.",
    "C3": "The loop asks, runs tools and repeats, at most so many turns; at the limit it is `exhausted`.",
    "C4": "Two dialects, native tool calls and JSON actions, and a lenient parser that asks again with the reason.",
    "C5": "Models are tried in order; a failure in mid-stream never shows the same text twice.",
    "C6": "Histories come back after a restart; compaction keeps tasks, open calls and artifact pointers.",
    "D1": "delegate: a session without history, task directories named in the header, streamed, in parallel.",
    "D2": "debate: all at once, each alone, answers in the order asked; rounds, a vote or a judge on top.",
    "D3": "pipeline: each output replaces every `{{input}}` literally, once; a failing step stops the line.",
    "D4": "Lists may be arrays or JSON text; malformed arguments get an error that a model can act on.",
    "D5": "The resident team stands behind the router.",
    "D6": "deliver writes into the task's delivery directory and nowhere else, and never overwrites.",
    "E1": "A delegated worker ends with the result form, which is validated, asked for again, then passed on.",
    "E2": "Small text inline, data in summary_data, bulk by pointer; what is too long is spilled to a file.",
    "E3": "Pointers travel, contents do not; a worker reads what it was handed, and nothing else.",
    "E4": "A task may carry its own output schema.",
    "E5": "The task state is kept by the runtime from what happened, and shown.",
    "E6": "A task that points at what the worker cannot see is returned with the reason.",
    "E7": "Context is handed on inline, by pointer, by scratchpad or by fork, and what each costs is told.",
    "F1": "Private and delivered directories of each task, and the database beside them.",
    "F2": "Every path is resolved and refused outside what the run may see; races are closed.",
    "F5": "A local sub-run's context does not leak to its parent or siblings, also across threads.",
    "G1": "spawn answers at once; the result arrives as a notification.",
    "G2": "The local kind runs in this process, isolated by context variables.",
    "J1": "Rules and modes by tool and argument; a child never has more than its parent, in rules or in files.",
    "J2": "What may not be decided reaches the user from any depth, waits across restarts, and runs once.",
    "K1": "Three failures of a worker at one task end that road; a provider that keeps failing is skipped.",
    "K2": "Loops are noticed: a warning to the model, then `stuck`.",
    "K3": "A worker is stopped after its time, with everything below it; what it did is kept.",
    "K4": "One budget for a tree, checked before spending.",
    "K5": "Every run, model call and tool call is recorded with parent, times, tokens, cost and full text.",
    "K6": "After `kill -9` runs go on from their last finished step; no finished model call is paid again.",
}

BEGUN: dict[str, str] = {
    "H3": "Notifications are built by an XML library; a worker's text can neither forge nor break one.",
}
