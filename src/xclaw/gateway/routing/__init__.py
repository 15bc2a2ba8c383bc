"""Who answers a request: mentions, rules as data, and optionally a model, in this order."""
