"""The wire over a cluster client, and the plans that it shares with the one for asyncio.

Naming the node of each command keeps the client from asking again by itself; it still follows redirections.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from redis.client import NEVER_DECODE
from redis.exceptions import MaxConnectionsError, NoScriptError

from reservable.backends.redis.commands import (
    ANSWERS,
    INFO,
    LOST,
    TROUBLE,
    Command,
    by_digest,
    by_text,
    look,
    scan,
)
from reservable.backends.redis.failures import broken, chain
from reservable.backends.redis.pools import listening
from reservable.backends.redis.steps import Call, Look, Scan
from reservable.plans import Plan, run
from reservable.retrying import LostReply

if TYPE_CHECKING:
    from reservable.backends.redis.clients import Place


class Send(NamedTuple):
    """Send the command to this node."""

    node: Any
    command: Command


class SendAll(NamedTuple):
    """Send each command to the node of its key, all at once."""

    commands: list[Command]


RAW = {NEVER_DECODE: True}


def calling(client: Any, step: Call) -> Plan[Any]:
    """Run the script on the node that has its first key."""
    node = client.get_node_from_key(step.keys[0])
    try:
        return (yield Send(node, by_digest(step)))
    except NoScriptError:
        pass
    return (yield Send(node, by_text(step)))


def scanning(client: Any, step: Scan) -> Plan[tuple[list[bytes], Any]]:
    """A page of the keys of one node; the cursor has the nodes that are left."""
    names, cursor = step.cursor or ([node.name for node in client.get_primaries()], 0)
    cursor, keys = yield Send(client.get_node(node_name=names[0]), scan(Scan(cursor, step.pattern)))
    cursor = int(cursor[names[0]] if isinstance(cursor, dict) else cursor)
    left = (names, cursor) if cursor else (names[1:], 0)
    return keys, left if left[0] else None


def looking(client: Any, step: Look) -> Plan[list[bytes | None]]:
    """The values of keys in any slots: one MGET for each slot, all in one go."""
    slots: dict[int, list[int]] = {}
    for place, key in enumerate(step.keys):
        slots.setdefault(client.keyslot(key), []).append(place)
    commands = [look(Look(tuple(step.keys[place] for place in places))) for places in slots.values()]
    values: list[bytes | None] = [None] * len(step.keys)
    for places, found in zip(slots.values(), (yield SendAll(commands)), strict=True):
        for place, value in zip(places, found, strict=True):
            values[place] = value
    return values


def introducing(client: Any, _: None) -> Plan[dict[str, str]]:
    """What one node says of itself."""
    told = yield Send(client.get_primaries()[0], INFO)
    return {key: str(value) for key, value in told.items()}


def explained(error: BaseException, secrets: Collection[str]) -> Exception:
    """What to raise for an error of a cluster client; as in `commands`, outside of the `except`."""
    if isinstance(error, (*ANSWERS, MaxConnectionsError)):
        return broken(error, secrets)
    # It may not even have been sent, the client does not say. Or a reply was lost, and then the map of slots could
    # not be read either.
    if any(isinstance(link, LOST) for link in chain(error)):
        return LostReply(broken(error, secrets))
    return broken(error, secrets)


class ClusterWire:
    """A cluster; the client is made when it is first needed, for making it asks the cluster for its slots."""

    def __init__(self, make: Callable[[], Any], place: Place, *, owned: bool) -> None:
        self.place = place
        self._make = make
        self._made: Any = None
        self._making = Lock()
        self._secrets = place.secrets
        self._owned = owned

    def call(self, step: Call) -> Any:
        return self._guarded(calling, step)

    def scan(self, step: Scan) -> tuple[list[bytes], Any]:
        return self._guarded(scanning, step)  # type: ignore[no-any-return]

    def look(self, step: Look) -> list[bytes | None]:
        return self._guarded(looking, step)  # type: ignore[no-any-return]

    def info(self) -> dict[str, str]:
        return self._guarded(introducing, None)  # type: ignore[no-any-return]

    def listener(self, key: bytes) -> Any:
        return listening(self._client().get_node_from_key(key).redis_connection.connection_pool)

    def close(self) -> None:
        if self._owned and self._made is not None:
            made, self._made = self._made, None
            made.close()

    def _guarded(self, plan: Callable[[Any, Any], Plan[Any]], step: Any) -> Any:
        try:
            client = self._client()
        except TROUBLE as error:
            failure: Exception = broken(error, self._secrets)
        else:
            try:
                return run(plan(client, step), self._perform)
            except TROUBLE as error:
                failure = explained(error, self._secrets)
        raise failure

    def _client(self) -> Any:
        if self._made is None:
            with self._making:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def _perform(self, step: Any) -> Any:
        if isinstance(step, Send):
            return self._made.execute_command(*step.command, target_nodes=step.node, **RAW)
        with self._made.pipeline() as pipe:
            for command in step.commands:
                pipe.execute_command(*command, **RAW)
            return pipe.execute()
