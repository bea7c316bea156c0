"""A grant as text, on its way to another process."""

from __future__ import annotations

import json
import string
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from reservable import durations
from reservable.errors import InvalidHandle
from reservable.grants import Grant
from reservable.handles.tenure import Tenure
from reservable.names import PART_LIMIT

H = TypeVar("H")

_FORM = "reservable/1"
_IN_NAMES = frozenset(string.ascii_letters + string.digits + "-._~%,:")
_LATEST = 253_402_300_799_999_999  # the last microsecond that a datetime can tell
_NOT_OURS = "this is not the text of a reservation: give what dumps() returned"


class Handed(NamedTuple):
    """What the text of a grant tells."""

    prefix: str
    grant: Grant
    owner: str
    free_at: int
    """When it runs out if it is released before, in microseconds by the store's clock; 0: at once."""


def dump(prefix: str, tenure: Tenure, owner: str) -> str:
    """The text: form, prefix, name, token, fence, since, until, owner, free_at, as a JSON list."""
    grant = tenure.grant
    free_at = (
        max(0, grant.until - int((tenure.deadline - tenure.free_at) * 1_000_000)) if tenure.free_at else 0
    )
    return json.dumps(
        [_FORM, prefix, grant.name, grant.token, grant.fence, grant.since, grant.until, owner, free_at]
    )


def parse(text: str) -> Handed:
    """What the text tells.

    Raises `InvalidHandle` for text that `dump` cannot have made, so that no store meets a name, a token or a
    number that it cannot take. A wrong token is for the store to judge.
    """
    try:
        parts = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        parts = None
    if type(parts) is not list or len(parts) != 9 or parts[0] != _FORM:
        # Outside of the handler: the parser's error carries the text along, token and all.
        raise InvalidHandle(_NOT_OURS)
    _, prefix, name, token, fence, since, until, owner, free_at = parts
    texts, numbers = (prefix, name, token, owner), (fence, since, until, free_at)
    sound = (
        all(type(value) is str and _is_text(value) for value in texts)
        and all(type(value) is int and 0 <= value <= _LATEST for value in numbers)
        and 0 < len(name) <= 3 * PART_LIMIT + 2
        and _IN_NAMES.issuperset(name)
        and token.isascii()
        and token.isalnum()
    )
    if not sound:
        raise InvalidHandle(_NOT_OURS)
    return Handed(prefix, Grant(name, token, fence, since, until), owner, free_at)


def revived(kind: Callable[..., H], text: str, store: Callable[[], Any]) -> H:
    """The handle of that kind on the grant that the text tells of, in the store.

    Raises `InvalidHandle` for text that is not ours, or of a store with another prefix.
    """
    prefix, grant, owner, free_at = parse(text)
    backend = store()
    if backend.prefix != prefix:
        raise InvalidHandle(
            f"the reservation was made with the prefix {prefix!r}, and this backend has {backend.prefix!r}"
        )
    now = time.time_ns() // 1000
    left = (grant.until - now) / 1_000_000
    lifetime = min(max(left, durations.SHORTEST.total_seconds()), durations.LONGEST.total_seconds())
    handle: Any = kind(backend, grant.name, lifetime, owner=owner)
    handle.resume(grant, left, (free_at - now) / 1_000_000)
    return handle  # type: ignore[no-any-return]


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # lone surrogates, which JSON can spell
        return False
    return "\x00" not in value
