"""Workflow scripts: orchestration that a model or a user writes down as a short Python script."""
