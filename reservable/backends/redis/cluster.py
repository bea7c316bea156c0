"""The wire over a cluster client."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock
from typing import Any

from redis.client import NEVER_DECODE
from redis.cluster import RedisCluster
from redis.exceptions import MaxConnectionsError, NoScriptError

from reservable.backends.redis.failures import broken, chain
from reservable.backends.redis.steps import Call, Look, Scan
from reservable.backends.redis.wires import ANSWERS, LOST, PAGE, TROUBLE
from reservable.retrying import LostReply


class ClusterWire:
    """A cluster; the client is made when it is first needed, for making it asks the cluster for its slots.

    Naming the node of each command keeps the client from asking again by itself; it still follows redirections.
    """

    def __init__(self, make: Callable[[], RedisCluster], *, secrets: Collection[str], owned: bool) -> None:
        self._make = make
        self._made: RedisCluster | None = None
        self._making = Lock()
        self._secrets = secrets
        self._owned = owned

    def call(self, step: Call) -> Any:
        return self._guarded(self._call, step)

    def scan(self, step: Scan) -> tuple[list[bytes], Any]:
        return self._guarded(self._scan, step)  # type: ignore[no-any-return]

    def look(self, step: Look) -> list[bytes | None]:
        return self._guarded(self._look, step)  # type: ignore[no-any-return]

    def memory(self) -> dict[str, str]:
        return self._guarded(self._memory, None)  # type: ignore[no-any-return]

    def close(self) -> None:
        if self._owned and self._made is not None:
            made, self._made = self._made, None
            made.close()

    def _guarded(self, perform: Callable[[Any, Any], Any], step: Any) -> Any:
        failure = lost = None
        try:
            client = self._client()
        except TROUBLE as error:
            failure = broken(error, self._secrets)
        else:
            try:
                return perform(client, step)
            except (*ANSWERS, MaxConnectionsError) as error:
                failure = broken(error, self._secrets)
            except LOST as error:  # it may not even have been sent; the client does not say
                lost = broken(error, self._secrets)
            except TROUBLE as error:
                # A reply was lost, and then the map of slots could not be read either.
                if any(isinstance(link, LOST) for link in chain(error)):
                    lost = broken(error, self._secrets)
                else:
                    failure = broken(error, self._secrets)
        if lost is not None:
            raise LostReply(lost)
        raise failure  # type: ignore[misc]  # one of the two is set here

    def _client(self) -> RedisCluster:
        if self._made is None:
            with self._making:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def _call(self, client: Any, step: Call) -> Any:
        script, keys, args = step
        options = {NEVER_DECODE: True, "target_nodes": client.get_node_from_key(keys[0])}
        try:
            return client.execute_command("EVALSHA", script.sha, len(keys), *keys, *args, **options)
        except NoScriptError:
            return client.execute_command("EVAL", script.text, len(keys), *keys, *args, **options)

    def _scan(self, client: Any, step: Scan) -> tuple[list[bytes], Any]:
        names, cursor = step.cursor or ([node.name for node in client.get_primaries()], 0)
        node = client.get_node(node_name=names[0])
        options = {NEVER_DECODE: True, "target_nodes": node}
        cursors, keys = client.execute_command(
            "SCAN", cursor, b"MATCH", step.pattern, b"COUNT", PAGE, **options
        )
        cursor = int(cursors[names[0]])
        left = (names, cursor) if cursor else (names[1:], 0)
        return keys, left if left[0] else None

    def _memory(self, client: Any, _: None) -> dict[str, str]:
        told = client.info("memory", target_nodes=client.get_primaries()[0])
        return {key: str(value) for key, value in told.items()}

    def _look(self, client: Any, step: Look) -> list[bytes | None]:
        slots: dict[int, list[int]] = {}
        for place, key in enumerate(step.keys):
            slots.setdefault(client.keyslot(key), []).append(place)
        values: list[bytes | None] = [None] * len(step.keys)
        with client.pipeline() as pipe:
            for places in slots.values():
                pipe.execute_command("MGET", *(step.keys[place] for place in places), **{NEVER_DECODE: True})
            for places, found in zip(slots.values(), pipe.execute(), strict=True):
                for place, value in zip(places, found, strict=True):
                    values[place] = value
        return values
