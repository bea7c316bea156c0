"""What went wrong, as JSON that every database takes: bounded, without NUL and without lone surrogates."""

from __future__ import annotations

import json
import traceback
from datetime import UTC, datetime
from typing import Any

KEPT = 10
"""How many failures of a row are remembered."""

LIMIT = 100_000
"""Bytes of all of them together."""

_TYPE, _MESSAGE, _TRACEBACK, _AT = 300, 16_000, 48_000, 100
"""Bytes of the parts of one."""

_GAP = "\n[...]\n"

Entry = dict[str, Any]
"""`type`, `message`, `traceback`, `attempt`, and `at` in ISO 8601."""


def entry(error: BaseException | str, attempt: int) -> Entry:
    """One failure, by this machine's clock; whatever `error` is or does when it is asked for its text."""
    if isinstance(error, BaseException):
        kind, said, where = _type(type(error)), _text(error), _traceback(error)
    else:
        kind, said, where = "", str(error), ""
    return {
        "type": _bounded(kind, _TYPE),
        "message": _bounded(said, _MESSAGE),
        "traceback": _bounded(where, _TRACEBACK),
        "attempt": attempt,
        "at": datetime.now(UTC).isoformat(),
    }


def added(earlier: Any, new: Entry) -> list[Entry]:
    """The newest failures, oldest first, with this one at the end; `earlier` is taken as `read` takes it."""
    kept, left = [new], LIMIT - _size(new) - 2
    for one in reversed(read(earlier)[-(KEPT - 1) :]):
        left -= _size(one) + 2
        if left < 0:
            break
        kept.append(one)
    return kept[::-1]


def dumped(entries: Any) -> str:
    """The entries as JSON in plain ASCII, which no character set and no collation can spoil."""
    return json.dumps(read(entries), ensure_ascii=True)


def read(stored: Any) -> list[Entry]:
    """The entries that a column has, whoever wrote it.

    Text that is no JSON list becomes one entry of unknown type (an empty text) with that text as its message; what is
    no entry inside a list becomes one likewise, and a part that an entry lacks is empty.
    """
    found = _parsed(stored) if isinstance(stored, str | bytes) else stored
    if isinstance(found, list | tuple):
        return [_read(one) for one in found]
    return [_read(found)] if found else []


def _parsed(stored: str | bytes) -> Any:
    text = stored if isinstance(stored, str) else stored.decode("utf-8", "backslashreplace")
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list) or not found else text


def _read(found: Any) -> Entry:
    is_one = isinstance(found, dict) and found.keys() & {"type", "message", "traceback"}
    parts: Entry = found if is_one else {"message": found}
    attempt = parts.get("attempt")
    return parts | {
        "type": _said(parts.get("type"), _TYPE),
        "message": _said(parts.get("message"), _MESSAGE),
        "traceback": _said(parts.get("traceback"), _TRACEBACK),
        "attempt": attempt if isinstance(attempt, int) else 0,
        "at": _said(parts.get("at"), _AT),
    }


def _said(found: Any, limit: int) -> str:
    if found is None:
        return ""
    return _bounded(found if isinstance(found, str) else json.dumps(found, default=repr), limit)


def _size(value: Any) -> int:
    return len(json.dumps(value))


def _type(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001 - the user's own __str__
        return f"<its text cannot be had: {type(trouble).__qualname__}>"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception as trouble:  # noqa: BLE001 - as above
        return f"<its traceback cannot be had: {type(trouble).__qualname__}>"


def _bounded(text: str, limit: int) -> str:
    """The text's beginning and end, as much of them as fits; a traceback says what happened at its end."""
    clean = _clean(text[:limit] + _GAP + text[-limit:] if len(text) > 2 * limit else text)
    if _size(clean) <= limit:
        return clean
    half = (limit - _size(_GAP)) // 2
    # Escapes take up to 12 bytes a character.
    while _size(cut := clean[:half] + _GAP + clean[-half:]) > limit:
        half = half * 9 // 10
    return cut


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")
