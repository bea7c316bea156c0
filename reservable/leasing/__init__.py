"""Leases on the rows of a queue, by SQL: claims, heartbeats, finishes and the loops of workers, for either ORM."""
