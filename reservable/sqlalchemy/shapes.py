"""Statements made of a caller's statement, built and compiled once for every shape of it.

Building one takes longer than the database takes to run it. So it is remembered by what SQLAlchemy's own cache
of compiled statements goes by: the caller's statement less its values, which are filled in anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Executable

from reservable.backends.database.connections import Connections
from reservable.backends.database.execution import TextStatement
from reservable.sqlalchemy.candidates import Candidates

REMEMBERED = 256
"""Shapes that are kept for one database, the latest used."""


class Shaped(NamedTuple):
    """A statement, and the values that the caller's own had this time."""

    text: TextStatement
    callers_values: Mapping[str, Any]

    def rows(self, connections: Connections, values: Mapping[str, Any]) -> Sequence[Any]:
        """Run it with more values, on a connection of the library's own."""
        every = {**self.callers_values, **values}
        return connections.lend(lambda driver: self.text.rows(driver, every))


def shaped(
    connections: Connections, candidates: Candidates, place: Hashable | None, build: Callable[[], Executable]
) -> Shaped:
    """What `build` makes of the candidates, from memory if it is there.

    `place` is all that makes it another beside the caller's statement; None: it is not met again.
    """
    cache_key = candidates.cache_key
    if cache_key is None:
        return Shaped(TextStatement(build(), connections.dialect), {})
    keys = [bind.key for bind in cache_key.bindparams]
    if place is None:
        text = TextStatement(build(), connections.dialect)
    else:
        remembered, place = connections.remembered, (cache_key.key, place)
        text, keys = remembered.pop(place, None) or (TextStatement(build(), connections.dialect), keys)
        _remember(connections, place, (text, keys))
    given = getattr(cache_key, "params", None) or {}  # by Select.params(), which SQLAlchemy 2.1 keeps apart
    values = {
        key: given.get(bind.key, bind.effective_value)
        for key, bind in zip(keys, cache_key.bindparams, strict=True)
        if bind.key in given or not bind.required  # SQLAlchemy says which one was forgotten
    }
    return Shaped(text, values)


def is_joined(connections: Connections, candidates: Candidates) -> bool:
    """Whether the statement reads other tables too; remembered, for it takes SQLAlchemy long to say."""
    if candidates.cache_key is None:
        return candidates.joined
    place = candidates.cache_key.key
    joined: bool | None = connections.remembered.get(place)
    if joined is None:
        joined = candidates.joined
        _remember(connections, place, joined)
    return joined


def _remember(connections: Connections, place: Hashable, value: Any) -> None:
    connections.remembered[place] = value
    if len(connections.remembered) > REMEMBERED:
        connections.remembered.popitem(last=False)
