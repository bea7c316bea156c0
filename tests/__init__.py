"""The tests; `servers`, `processes` and `waiting` are what they share."""
