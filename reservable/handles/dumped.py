"""A grant as text, on its way to another process."""

from __future__ import annotations

import json
import string

from reservable.errors import InvalidHandle
from reservable.grants import Grant
from reservable.names import PART_LIMIT

_FORM = "reservable/1"
_IN_NAMES = frozenset(string.ascii_letters + string.digits + "-._~%,:")
_LATEST = 253_402_300_799_999_999  # the last microsecond that a datetime can tell
_NOT_OURS = "this is not the text of a reservation: give what dumps() returned"


def dump(prefix: str, grant: Grant, owner: str) -> str:
    """The text: form, prefix, name, token, fence, since, until, owner, as a JSON list."""
    return json.dumps([_FORM, prefix, grant.name, grant.token, grant.fence, grant.since, grant.until, owner])


def parse(text: str) -> tuple[str, Grant, str]:
    """Prefix, grant and owner of the text.

    Raises `InvalidHandle` for text that `dump` cannot have made, so that no store meets a name, a token or a
    number that it cannot take. A wrong token is for the store to judge.
    """
    try:
        parts = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        parts = None
    if type(parts) is not list or len(parts) != 8 or parts[0] != _FORM:
        # Outside of the handler: the parser's error carries the text along, token and all.
        raise InvalidHandle(_NOT_OURS)
    _, prefix, name, token, fence, since, until, owner = parts
    texts, numbers = (prefix, name, token, owner), (fence, since, until)
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
    return prefix, Grant(name, token, fence, since, until), owner


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # lone surrogates, which JSON can spell
        return False
    return "\x00" not in value
