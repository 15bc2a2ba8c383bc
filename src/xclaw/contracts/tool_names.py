"""Names of the built-in tools, by what they are for: one list for whoever hands them out or names them."""

WORKER_TOOLS = ("view_file", "list_dir", "search", "write_file", "edit_file", "deliver")
"""Of every agent: files of its own, and delivery."""
COORDINATION_TOOLS = (
    "delegate",
    "debate",
    "pipeline",
    "create_team",
    "spawn",
    "wait",
    "send_message",
    "stop",
    "list_agents",
    "workflow",
)
"""Of an orchestrator: they hand work out."""
SCRATCHPAD_TOOLS = (
    "scratchpad_write",
    "scratchpad_append",
    "scratchpad_read",
    "scratchpad_list",
    "scratchpad_search",
)
MEMORY_TOOLS = ("remember", "recall", "forget", "kb_search")
