"""What a reservation looks like in Redis: a wire format between releases.

    key     prefix + name                       (UTF-8)
    value   "R1" SP token SP fence SP owner     (UTF-8; the owner is the rest and may hold anything)
    expiry  of the key: the reservation's end

The fence is the server's time of the grant in whole microseconds since the epoch. `R1` tells our keys from the
user's own in the same database: those are never listed, broken or overwritten, only found to be in the way.
"""

from __future__ import annotations

from reservable.grants import Holder


def mark(token: str) -> bytes:
    """How the value of a key starts that this token holds."""
    return b"R1 %b " % encoded(token)


def encoded(text: str) -> bytes:
    """UTF-8; a lone surrogate, which has none, becomes a question mark."""
    return text.encode("utf-8", "replace")


def end(now: int, left: int) -> int:
    """When a key ends of which PTTL said `left` milliseconds at `now`: the start of its last millisecond."""
    return max(now, (now // 1000 + left) * 1000)


def holder(name: str, value: bytes, now: int, ends: int) -> Holder:
    """Who holds the name; `now` in microseconds, `ends` in milliseconds, both by the server's clock."""
    _, _, fence, owner = value.split(b" ", 3)
    return Holder.at(
        now,
        name=name,
        owner=owner.decode("utf-8", "replace"),
        fence=int(fence),
        since=int(fence),
        until=max(now, ends * 1000),
    )
