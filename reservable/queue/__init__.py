"""The rules of the queue: which status a row may leave for which, and what that does to it. No I/O and no ORM."""
