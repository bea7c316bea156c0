"""What one object has reserved, so that it gives back its own grants and nothing else.

An object may be shared by threads and tasks: each gives back the grant it was given itself.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet, ref

from reservable.handles.blocks import worker
from reservable.handles.handle import Handle


def _key(name: str) -> str:
    return name.rpartition(":")[2]


class _Account:
    """One key: who has tried it, and the grants in their order, whatever their rows were called by then."""

    __slots__ = ("grants", "workers")

    def __init__(self) -> None:
        self.workers: WeakSet[Any] = WeakSet()
        # By reference: the id of a worker that has ended is soon that of another.
        self.grants: list[tuple[ref[Any], Handle]] = []


class Holdings:
    """The reservations that one object has tried and got.

    By their key, which is the last part of a name: what the object's row is called may change (its session, the
    schema that it means, its primary key), and a grant keeps the name that it was made under.
    """

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def tried(self, handle: Handle) -> None:
        """Remember that the present worker asks for what the handle names."""
        self.trying(handle.name)

    def trying(self, name: str) -> None:
        """As `tried`, by the name or the encoded key, before there is a handle."""
        key = _key(name)
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts.setdefault(key, _Account())
        account.workers.add(worker())

    def granted(self, handle: Handle) -> None:
        """Remember a grant of the present worker's, and forget those that have ended."""
        self.tried(handle)  # one that was found by a search was never asked for by itself
        account = self._accounts[_key(handle.name)]
        account.grants = [
            grant for grant in account.grants if grant[1] is not handle and grant[1].outlives(handle)
        ]
        account.grants.append((ref(worker()), handle))

    def must_be_blocking(self) -> None:
        """Raises where blocking code must not be called; not every ORM minds."""

    def holding(self, name: str) -> Handle | None:
        """The handle on the grant of this key that stands, as far as we know; the latest one."""
        account = self._accounts.get(_key(name))
        held = [handle for _, handle in account.grants if handle.held] if account is not None else []
        return held[-1] if held else None

    def has_tried(self, name: str) -> bool:
        """Whether this object ever asked for the key, so that it is no bystander."""
        return _key(name) in self._accounts

    def to_release(self, name: str) -> Handle | None:
        """The grant that the present worker gives back: its own, or the latest if it never asked itself."""
        account = self._accounts.get(_key(name))
        if account is None:
            return None
        me = worker()
        own = [handle for its, handle in account.grants if its() is me and handle.token is not None]
        if own:
            return own[-1]
        if me in account.workers:
            return None  # asked and was refused: what stands is another's
        standing = [handle for _, handle in account.grants if handle.token is not None]
        return standing[-1] if standing else None

    def __reduce__(self) -> Any:
        # A copy of the object, in this process or another, holds nothing.
        return (Holdings, ())
