"""The library's three levels as contenders: the verbs of a backend, a handle, and a loaded instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import count
from secrets import token_hex

from benchmarks.models import HOURS, KEY, Video
from benchmarks.rounds import Contender
from reservable import Backend, Reservation

VERBS, HANDLE, INSTANCE = "ours: backend verbs", "ours: Reservation handle", "ours: obj.reserve/release"
LEVELS = (VERBS, HANDLE, INSTANCE)

OWNER = "bench:1"
LIFETIME = timedelta(hours=6)
TAKEN = "videos:0:download"
"""The name that somebody else holds while refusals are measured; `fill` makes no such row."""


class Failed(Exception):
    """A contender did not do its work; its time would mean nothing."""


def must(done: object) -> None:
    """Raise `Failed` unless it was done."""
    if not done:
        raise Failed


def fresh_names(of: str) -> Iterator[str]:
    """Names that were never used before."""
    return (f"{of}:{number}:{KEY}" for number in count(1))


def pairs(backend: Backend, instances: Sequence[Video]) -> list[Contender]:
    """Reserve and release a fresh name; each instance is used once, and by this alone."""
    by_verbs, by_handle, rows = fresh_names("verbs"), fresh_names("handles"), iter(instances)

    def verbs() -> None:
        name, token = next(by_verbs), token_hex(16)
        must(backend.acquire(name, token, OWNER, LIFETIME))
        backend.release(name, token)

    def handle() -> None:
        reservation = Reservation(backend, next(by_handle), HOURS)
        must(reservation.acquire())
        reservation.release()

    def instance() -> None:
        video = next(rows)
        must(video.reserve(KEY, HOURS))
        video.release(KEY)

    return [Contender(VERBS, verbs), Contender(HANDLE, handle), Contender(INSTANCE, instance)]


def refusals(backend: Backend, instance: Video) -> list[Contender]:
    """Try what somebody else holds: the name TAKEN, and the instance's row."""
    video_name = f"videos:{instance.id}:{KEY}"
    for name in (TAKEN, video_name):
        must(backend.acquire(name, token_hex(16), OWNER, LIFETIME))

    def verbs() -> None:
        must(backend.acquire(TAKEN, token_hex(16), OWNER, LIFETIME) is None)

    def handle() -> None:
        must(not Reservation(backend, TAKEN, HOURS).acquire())

    def by_instance() -> None:
        must(not instance.reserve(KEY, HOURS))

    return [Contender(VERBS, verbs), Contender(HANDLE, handle), Contender(INSTANCE, by_instance)]
