"""What a plan asks of Redis: pure values, no driver."""

from __future__ import annotations

from hashlib import sha1
from importlib.resources import files
from typing import Any, NamedTuple


class Script(NamedTuple):
    """A Lua script beside this file, and the digest by which the server knows it."""

    name: str
    text: bytes
    sha: bytes

    @classmethod
    def load(cls, name: str) -> Script:
        text = files("reservable.backends.redis").joinpath(f"{name}.lua").read_bytes()
        return cls(name, text, sha1(text, usedforsecurity=False).hexdigest().encode())


class Call(NamedTuple):
    """Run the script on these keys. A plain tuple, for there are two of them in every reservation."""

    script: Script
    keys: tuple[bytes, ...]
    args: tuple[bytes | int, ...] = ()

    def __repr__(self) -> str:  # the arguments hold the token
        return f"Call({self.script.name}, {len(self.keys)} keys)"


class Look(NamedTuple):
    """Read the values of keys that may live in different slots of a cluster; None where there is none."""

    keys: tuple[bytes, ...]


class Scan(NamedTuple):
    """Read one page of the keys that match the glob; the answer is the keys and the next cursor, None at the end."""

    cursor: Any
    pattern: bytes
