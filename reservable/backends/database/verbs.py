"""The verbs of a reservation table as plans: which statement, with which values, and what its rows mean."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from reservable.backends.base import Verbs
from reservable.backends.database.schema import OWNER_LENGTH
from reservable.grants import MICROSECOND, Grant, Holder, Released
from reservable.plans import Plan
from reservable.retrying import asking


class Execute(NamedTuple):
    """The step that runs one statement, named after its attribute in `Statements`."""

    statement: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the database said: the rows, or how many were changed (and MySQL's LAST_INSERT_ID)."""

    rows: Sequence[Any]
    count: int
    last: int | None = None

    @property
    def changed(self) -> int:
        """How many rows were changed, also by a statement that returns them."""
        return max(self.count, len(self.rows))


class DatabaseVerbs(Verbs):
    """The contract of `Backend`, in terms of `Execute` steps."""

    BATCH = 1000
    """Names that one statement is asked about."""

    def __init__(self, prefix: str, channel: Callable[[str], str] | None = None) -> None:
        self.prefix = prefix
        self._channel = channel
        """The channel on which waiters for a stored name are told, where they are."""

    def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Plan[Grant | None]:
        full = self.prefix + name
        values = {"name": full, "token": token, "owner": kept(owner), "lifetime": lifetime // MICROSECOND}
        undo = self._ending("release", full, token=token)
        answer, _ = yield from asking(Execute("acquire", values), undo)
        return self.granted(answer.rows, {token})

    def granted(self, rows: Sequence[Any], tokens: set[str]) -> Grant | None:
        """The grant among the rows that stand, by its token; None when somebody else's stands, or nothing."""
        for name, token, _owner, fence, since, until in rows:
            if token in tokens:
                return Grant(self.bare(name), token, fence, since, until)
        return None

    def bare(self, name: str) -> str:
        """The name without this store's prefix."""
        return name[len(self.prefix) :]

    def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Plan[Grant | None]:
        standing: dict[str, Any] = {}
        for start in range(0, len(names), self.BATCH) if len(names) > 1 else ():
            batch = [self.prefix + name for name in names[start : start + self.BATCH]]
            answer, _ = yield from asking(Execute("held", {"names": batch}))
            standing.update((self.bare(row[0]), row) for row in answer.rows)
        ours = self.granted(list(standing.values()), {token})
        if ours is not None:
            return ours  # asked before with this token, and the answer did not arrive
        for name in names:
            if name not in standing:
                grant = yield from self.acquire(name, token, owner, lifetime)
                if grant is not None:
                    return grant
        return None

    def release(self, name: str, token: str) -> Plan[Released]:
        full = self.prefix + name
        answer, again = yield from asking(self._ending("release", full, token=token))
        if answer.changed:
            return Released.YES
        if again:  # the request whose reply was lost may be the one that released
            return Released.UNKNOWN
        answer, _ = yield from asking(Execute("holder", {"name": full}))
        return Released.BY_ANOTHER if answer.rows else Released.NOT_HELD

    def extend(self, name: str, token: str, lifetime: timedelta) -> Plan[int | None]:
        values = {"name": self.prefix + name, "token": token, "lifetime": lifetime // MICROSECOND}
        answer, _ = yield from asking(Execute("extend", values))
        if answer.rows:
            return int(answer.rows[0][0])
        return answer.last if answer.count else None

    def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> Plan[dict[str, int]]:
        ends: dict[str, int] = {}
        # In the order of the names, as everybody who locks several rows.
        rest = sorted((self.prefix + name, token) for name, token in held)
        for start in range(0, len(rest), self.BATCH):
            batch = rest[start : start + self.BATCH]
            names = [name for name, _ in batch]
            pairs = [f"{name} {token}" for name, token in batch]
            values = {"names": names, "pairs": pairs, "lifetime": lifetime // MICROSECOND}
            answer, _ = yield from asking(Execute("extend_many", values))
            ends.update((self.bare(name), int(until)) for name, until in answer.rows)
        return ends

    def holder(self, name: str) -> Plan[Holder | None]:
        answer, _ = yield from asking(Execute("holder", {"name": self.prefix + name}))
        return self._holder(answer.rows[0]) if answer.rows else None

    def _holder(self, row: Any) -> Holder:
        name, owner, fence, since, until, now = row
        return Holder.at(now, name=self.bare(name), owner=owner, fence=fence, since=since, until=until)

    def break_(self, name: str) -> Plan[bool]:
        # Asked twice, it might break the grant of whoever came after.
        answer, _ = yield from asking(self._ending("break_", self.prefix + name), repeatable=False)
        return bool(answer.changed)

    def _ending(self, statement: str, full: str, **values: str) -> Execute:
        """The step that ends the reservation of the stored name, and tells of it."""
        values["name"] = full
        if self._channel is not None:
            values["channel"] = self._channel(full)
        return Execute(statement, values)

    def page(self, pattern: str, after: Any) -> Plan[tuple[Sequence[Holder], Any]]:
        answer, _ = yield from asking(Execute("page", self._span(after, fixed_start(pattern))))
        matches = re.compile(fnmatch.translate(pattern)).match
        holders = [holder for holder in map(self._holder, answer.rows) if matches(holder.name)]
        return holders, (answer.rows[-1][0] if answer.rows else None)

    def prune(self) -> Plan[int]:
        # Small batches in the order of the names: two prunes, or a prune and a takeover, meet in one order
        # and hold few rows at a time. The DELETE asks again whether each is over.
        pruned, after = 0, ""
        while True:
            answer, _ = yield from asking(Execute("over", self._span(after, "")))
            names = [row[0] for row in answer.rows]
            if not names:
                return pruned
            answer, _ = yield from asking(Execute("prune", {"names": names}))
            pruned += answer.count
            after = names[-1]

    def _span(self, after: str | None, start: str) -> dict[str, str]:
        """The names that start so, behind `after`: a range of the primary key."""
        low = self.prefix + start
        return {"after": after or "", "low": low, "high": low + "\x7f"}


def kept(owner: str) -> str:
    """As much of the owner's label as every database can keep: it is for people, and nothing depends on it."""
    if len(owner) <= OWNER_LENGTH and owner.isprintable():
        return owner  # neither NUL nor lone surrogates, and seen quickly
    return owner[:OWNER_LENGTH].replace("\0", "?").encode("utf-8", "replace").decode("utf-8")


def fixed_start(pattern: str) -> str:
    """The text in front of a shell pattern's first wildcard."""
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0]
