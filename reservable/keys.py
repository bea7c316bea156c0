"""The text of a key: what a row is reserved *for*, the same text in every process and after every restart."""

from __future__ import annotations

import sys
from enum import Enum
from inspect import getattr_static
from numbers import Integral, Number
from types import FunctionType
from uuid import UUID

from reservable.errors import InvalidKey

_ADVICE = "use text, an int, a UUID, an Enum member, a class, a function, or an object of a class of your own"


def key_text(key: object) -> str:
    """Return the text of a key; raise `InvalidKey`, saying what to use instead, when it has none that lasts.

    Text is taken as it is, of a `str` Enum member its value; other members give their name, an int its digits, a
    UUID its canonical text, a class, function or method `module.qualname`, any other object that of its class.
    `__reservation_key__`, an attribute or a method without arguments, on an object or class, comes before these.
    """
    if type(key) is str:
        return _sound(key)
    text = _chosen_text(key)
    if text is None:
        text = _own_text(key)
    return _sound(_qualified(key) if text is None else text)


def _sound(text: str) -> str:
    if not text:
        raise InvalidKey("a key cannot be empty; say what the row is reserved for, as in 'download'")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidKey(f"{text[:60]!a} has lone surrogates, so it is no text; decode it first") from None
    return text


def _chosen_text(key: object) -> str | None:
    """What the object or class says its key is; None when it says nothing."""
    chosen = getattr(key, "__reservation_key__", None)
    if chosen is None or (isinstance(key, type) and _meant_for_instances(key)):
        return None
    text = _own_text(chosen() if callable(chosen) else chosen)
    if text is None:
        raise InvalidKey(f"__reservation_key__ of {_label(key)} gives no text, int, UUID or Enum member")
    return text


def _meant_for_instances(cls: type) -> bool:
    return isinstance(getattr_static(cls, "__reservation_key__", None), FunctionType | property)


def _own_text(key: object) -> str | None:
    """The text of a key that is a value; None for whatever is known by its name in the code, or is no key."""
    if isinstance(key, Enum):
        if isinstance(key, str):
            return str.__str__(key.value if isinstance(key.value, str) else key)
        name: str | None = key.name
        return name or ""  # an empty Flag has none
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, UUID):
        return str(key)
    if type(key) is not bool and isinstance(key, Integral):
        try:
            return str(int(key))
        except ValueError:
            raise InvalidKey("an int of thousands of digits is no key; use a shorter one") from None
    return None


def _qualified(key: object) -> str:
    """`module.qualname` of a class or of something callable that has a name, else of the object's class."""
    named = isinstance(key, type) or (callable(key) and isinstance(getattr(key, "__qualname__", None), str))
    if not named:
        _refuse_values(key)
    owner = key if named else type(key)
    module, qualname = getattr(owner, "__module__", None), getattr(owner, "__qualname__", "")
    if not isinstance(module, str) or "<" in qualname:  # <locals>, <lambda>
        raise InvalidKey(
            f"{_label(key)} has no name that another process could find: it is a lambda, built in, or defined inside "
            f"a function; define it at the top of a module, or {_ADVICE}"
        )
    return f"{_importable(module)}.{qualname}"


def _refuse_values(key: object) -> None:
    """Refuse an object whose class says nothing about it: two different values would be one key."""
    cls = type(key)
    if hasattr(key, "_sa_instance_state") or (hasattr(cls, "_meta") and hasattr(cls, "pk")):
        raise InvalidKey(f"{_label(key)} is a model instance, not what a row is reserved for; {_ADVICE}")
    package = cls.__module__.partition(".")[0]
    if isinstance(key, Number | bytes | bytearray) or package in sys.stdlib_module_names:
        raise InvalidKey(f"{_label(key)} is a value that is no key; {_ADVICE}")


def _importable(module: str) -> str:
    """The name under which other processes import the module that this one was started with, where it is known.

    `python -m` leaves it in `__spec__`; a process that multiprocessing spawned calls its own `__mp_main__`.
    """
    if module not in {"__main__", "__mp_main__"}:
        return module
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return "__main__" if spec is None else str(spec.name)


def _label(key: object) -> str:
    """Name the key in an error by its type: its repr may be long, and may fail."""
    cls = type(key)
    return f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")
