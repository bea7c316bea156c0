"""The verbs as plans: which script to run on which keys, and what its answer means.

Redis keeps a key through the whole of its last millisecond, so a reservation is never shorter than asked, and
the `until` that is told here is never later than its true end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from reservable.backends.base import Verbs
from reservable.backends.redis.steps import Call, Look, Scan, Script
from reservable.backends.redis.value import encoded, end, holder, mark
from reservable.grants import Grant, Holder, Released
from reservable.plans import Plan
from reservable.retrying import asking

ACQUIRE = Script.load("acquire")
ACQUIRE_FIRST = Script.load("acquire_first")
RELEASE = Script.load("release")
EXTEND = Script.load("extend")
EXTEND_MANY = Script.load("extend_many")
HOLDER = Script.load("holder")
BREAK = Script.load("break")

MILLISECOND = timedelta(milliseconds=1)

BATCH = 1000
"""Reservations that one call extends: a script keeps everybody else waiting."""


def milliseconds(lifetime: timedelta) -> int:
    """Whole milliseconds, rounded up: never shorter than asked, never zero."""
    return max(1, -(-lifetime // MILLISECOND))


def shares_slot(prefix: str) -> bool:
    """Whether a prefix such as "{app}:" puts all its keys into one slot of a cluster (names hold no braces)."""
    return re.search(r"^[^{]*\{[^}]+\}", prefix) is not None


def glob(prefix: str, pattern: str) -> bytes:
    """Redis's glob for keys of the prefix that may match the shell pattern, whose classes it spells otherwise."""
    plain = re.split(r"[\[\\]", pattern, maxsplit=1)
    escaped = re.sub(r"([*?\[\]\\^-])", r"\\\1", prefix)
    return encoded(escaped + plain[0] + ("*" if len(plain) > 1 else ""))


class RedisVerbs(Verbs):
    """The verbs of Redis; `cluster` where keys of different slots cannot go into one script call.

    On a cluster, `acquire_first` reads all keys first and then tries those that looked free, one by one, and
    `list` and `extend_many` ask key by key; a prefix with a hash tag, "{app}:", keeps each at one call.
    """

    def __init__(self, prefix: str = "", *, cluster: bool = False) -> None:
        self._prefix = prefix
        self._start = encoded(prefix)
        self._one_slot = not cluster or shares_slot(prefix)

    def key(self, name: str) -> bytes:
        """The key that holds the reservation of this name."""
        return self._start + name.encode()

    def acquire(self, name: str, token: str, owner: str, lifetime: timedelta) -> Plan[Grant | None]:
        mine, left = mark(token), milliseconds(lifetime)
        key = self.key(name)
        call = Call(ACQUIRE, (key,), (mine, encoded(owner), left))
        answer, _ = yield from asking(call, undo=Call(RELEASE, (key,), (mine,)))
        if answer is None:
            return None
        if isinstance(answer, list):
            fence, now, left = answer
            fence = int(fence)
            return Grant(name, token, fence, fence, end(now, left))
        return Grant(name, token, answer, answer, answer + left * 1000)

    def acquire_first(
        self, names: Sequence[str], token: str, owner: str, lifetime: timedelta
    ) -> Plan[Grant | None]:
        if not names:
            return None
        keys = self._keys(names)
        if not self._one_slot:
            return (yield from self._acquire_first_of_slots(names, keys, token, owner, lifetime))
        call = Call(ACQUIRE_FIRST, keys, (mark(token), encoded(owner), milliseconds(lifetime)))
        answer, _ = yield from asking(call)
        if answer is None:
            return None
        which, fence, now, left = answer
        fence = int(fence)
        return Grant(names[int(which) - 1], token, fence, fence, end(now, left))

    def _acquire_first_of_slots(
        self, names: Sequence[str], keys: tuple[bytes, ...], token: str, owner: str, lifetime: timedelta
    ) -> Plan[Grant | None]:
        values, _ = yield from asking(Look(keys))
        mine = mark(token)
        wanted = [i for i, value in enumerate(values) if value is not None and value.startswith(mine)]
        wanted += [i for i, value in enumerate(values) if value is None]
        for i in wanted:  # somebody else may have been quicker, or ours may just be over: acquire decides
            granted: Grant | None = yield from self.acquire(names[i], token, owner, lifetime)
            if granted is not None:
                return granted
        return None

    def release(self, name: str, token: str) -> Plan[Released]:
        answer, again = yield from asking(Call(RELEASE, (self.key(name),), (mark(token),)))
        if answer == 1:
            return Released.YES
        if again:  # the request whose reply was lost may be the one that released
            return Released.UNKNOWN
        return Released.NOT_HELD if answer == 0 else Released.BY_ANOTHER

    def extend(self, name: str, token: str, lifetime: timedelta) -> Plan[int | None]:
        left = milliseconds(lifetime)
        now, _ = yield from asking(Call(EXTEND, (self.key(name),), (mark(token), left)))
        return None if now is None else now + left * 1000

    def extend_many(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> Plan[dict[str, int]]:
        if not self._one_slot:
            return (yield from self._extend_each(held, lifetime))
        left, ends = milliseconds(lifetime), {}
        for start in range(0, len(held), BATCH):
            batch = held[start : start + BATCH]
            keys = self._keys([name for name, _ in batch])
            call = Call(EXTEND_MANY, keys, (left, *(mark(token) for _, token in batch)))
            (now, *extended), _ = yield from asking(call)
            done = zip(batch, extended, strict=True)
            ends.update({name: now + left * 1000 for (name, _), stands in done if stands})
        return ends

    def _extend_each(self, held: Sequence[tuple[str, str]], lifetime: timedelta) -> Plan[dict[str, int]]:
        ends: dict[str, int] = {}
        for name, token in held:
            until: int | None = yield from self.extend(name, token, lifetime)
            if until is not None:
                ends[name] = until
        return ends

    def holder(self, name: str) -> Plan[Holder | None]:
        found: list[Holder] = yield from self._holders((self.key(name),))
        return found[0] if found else None

    def break_(self, name: str) -> Plan[bool]:
        # Asked twice, it might break the grant of whoever came after.
        broken, _ = yield from asking(Call(BREAK, (self.key(name),)), repeatable=False)
        return bool(broken)

    def page(self, pattern: str, after: Any) -> Plan[tuple[Sequence[Holder], Any]]:
        cursor, seen = after or (None, set())
        (keys, cursor), _ = yield from asking(Scan(cursor, glob(self._prefix, pattern)))
        fresh = self._matching(keys, pattern) - seen  # SCAN may return a key more than once
        seen |= fresh
        holders: list[Holder] = []
        for batch in [tuple(fresh)] if self._one_slot else [(key,) for key in fresh]:
            holders += yield from self._holders(batch)
        return holders, None if cursor is None else (cursor, seen)

    def prune(self) -> Plan[int]:
        """Nothing to do: Redis forgets by itself."""
        yield from ()
        return 0

    def _keys(self, names: Sequence[str]) -> tuple[bytes, ...]:
        # One pass over all names in C; a name cannot hold the NUL between them.
        return tuple((self._prefix + ("\0" + self._prefix).join(names)).encode().split(b"\0"))

    def _matching(self, keys: Sequence[bytes], pattern: str) -> set[bytes]:
        if pattern == "*":
            return set(keys)
        start = len(self._start)
        return {key for key in keys if fnmatchcase(key[start:].decode("utf-8", "replace"), pattern)}

    def _holders(self, keys: tuple[bytes, ...]) -> Plan[list[Holder]]:
        if not keys:
            return []
        (now, *pairs), _ = yield from asking(Call(HOLDER, keys))
        start = len(self._start)
        return [
            holder(key[start:].decode("utf-8", "replace"), value, now, ends)
            for key, value, ends in zip(keys, pairs[::2], pairs[1::2], strict=True)
            if value is not None
        ]
