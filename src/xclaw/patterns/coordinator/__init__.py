"""The four phases of a coordinator, one tool each: research, write_plan, implement, verify (SPEC H)."""
