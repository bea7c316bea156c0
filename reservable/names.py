"""The name of a reservation, `<model>:<pk>:<key>`: different triples never share one, on any store.

Each part is percent-encoded outside the unreserved characters of RFC 3986 (letters, digits, `-._~`), so the
separators `:` and `,` cannot come from user text, and nothing depends on collations, case folding or Unicode
forms. The layout is a wire format between releases; golden values in the tests freeze it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_from_bytes, unquote

from reservable.errors import ConfigurationError, InvalidKey, UnidentifiedInstance
from reservable.keys import key_text

PART_LIMIT = 255
"""Bytes of an encoded part; a longer one is refused and never cut."""

PREFIX_LIMIT = 64
"""Bytes of a prefix."""

_NOT_IN_PREFIXES = frozenset("%*?[]\\")  # what escapes, and what the stores' patterns mean something by


def encode(text: str, part: str = "name") -> str:
    """Percent-encode one part of a name (RFC 3986, UTF-8, upper-case hex).

    Raise `InvalidKey`, saying which `part`, for lone surrogates and for more than 255 encoded bytes.
    """
    try:
        return _fitting(quote(text, safe=""), part)
    except UnicodeEncodeError:
        raise InvalidKey(f"the {part} has lone surrogates, so it is no text; decode it first") from None


def decode(part: str) -> str:
    """Undo `encode`, for people to read; bytes that are no UTF-8 are shown as escapes."""
    return unquote(part, errors="backslashreplace")


def row_name(model: str, pk: str, key: object) -> str:
    """Name the reservation of a row: `model` and `pk` are encoded already, the key is not.

    Raise `InvalidKey` for a key that has no text of its own or is too long.
    """
    return f"{model}:{pk}:{_encoded_text(key) if type(key) is str else encode(key_text(key), 'key')}"


def plain_name(key: object) -> str:
    """Name a reservation without a model: one encoded part, so it has no colon. Raise `InvalidKey` as `row_name`."""
    return _encoded_text(key) if type(key) is str else encode(key_text(key), "key")


@lru_cache(maxsize=1024)
def _encoded_text(key: str) -> str:
    return encode(key_text(key), "key")


def pk_text(values: Sequence[object]) -> str:
    """Return the encoded primary key: equal keys give equal text however they were typed, as 1, True and Decimal(1).

    The parts of a composite key are joined with `,`, which no encoded part has. Raise `UnidentifiedInstance` when
    a part is None or there is none, `InvalidKey` when the whole is longer than 255 bytes.
    """
    if not values or None in values:
        raise UnidentifiedInstance("the instance has no complete primary key yet; flush or save it first")
    if len(values) == 1 and type(values[0]) is int:
        return _fitting(str(values[0]), "primary key")
    return _fitting(",".join([_pk_part(value) for value in values]), "primary key")


def pk_parts(pk: str) -> list[str]:
    """Return the texts that `pk_text` joined."""
    return [decode(part) for part in pk.split(",")]


def table_model(name: str, schema: str | None = None) -> str:
    """Return the encoded model of a table: `name` or `schema.name`; a dot inside either is encoded as well."""
    parts = [schema, name] if schema else [name]
    return _fitting(".".join(encode(part, "table name").replace(".", "%2E") for part in parts), "table name")


def must_share(model: type[Any], root: type[Any], attribute: str) -> None:
    """Raises `ConfigurationError` where two classes of the same rows would name or keep their reservations in two ways."""
    if getattr(model, attribute, None) != getattr(root, attribute, None):
        raise not_shared(model, root, attribute)


def not_shared(model: type[Any], root: type[Any], attribute: str) -> ConfigurationError:
    """The error of `must_share`."""
    return ConfigurationError(
        f"{model.__name__} and {root.__name__} share their rows and must share one {attribute}: set it on {root.__name__}"
    )


def chosen_model(text: object) -> str:
    """Return the encoded model that a class chose by `__reservable_name__`; raise `InvalidKey` when it is empty."""
    if not isinstance(text, str) or not text:
        raise InvalidKey("__reservable_name__ must be text that is not empty, as in 'videos'")
    return encode(text, "model name")


def split(name: str) -> tuple[str, str, str] | None:
    """Take a row's name apart into model, pk and key, still encoded; None for a name without a model."""
    model, _, rest = name.partition(":")
    pk, _, key = rest.partition(":")
    return (model, pk, key) if model and key and ":" not in key else None


def check_prefix(prefix: object) -> str:
    """Return the prefix of all names; raise `ConfigurationError` for one that some store could misread.

    At most 64 printable ASCII characters, without white space and without `%*?[]` and backslash.
    """
    if not isinstance(prefix, str) or len(prefix) > PREFIX_LIMIT:
        raise ConfigurationError(f"a prefix is text of at most {PREFIX_LIMIT} bytes, as in 'shop:'")
    if not all("!" <= character <= "~" for character in prefix) or not _NOT_IN_PREFIXES.isdisjoint(prefix):
        raise ConfigurationError(
            f"prefix {prefix!a} has a character that stores could misread; use letters, digits and :-._~"
        )
    return prefix


def _fitting(encoded: str, part: str) -> str:
    if len(encoded) > PART_LIMIT:
        raise InvalidKey(f"the {part} takes {len(encoded)} bytes, more than {PART_LIMIT}; shorten it")
    return encoded


def _pk_part(value: object) -> str:
    """One part of a primary key. What is equal to text or to a number in Python gives the text of that."""
    if isinstance(value, bytes | bytearray | memoryview):
        return quote_from_bytes(bytes(value), safe="")
    if isinstance(value, str):
        text = str.__str__(value)
    elif isinstance(value, int | float | Decimal):
        text = _number(value)
    elif isinstance(value, Enum):
        text = value.name
    elif isinstance(value, datetime) and value.utcoffset() is not None:
        text = value.astimezone(UTC).isoformat()
    elif isinstance(value, date | time):  # a datetime is a date
        text = value.isoformat()
    else:
        text = str(value)  # a UUID's is canonical
    return encode(text, "primary key")


def _number(value: float | Decimal) -> str:
    """Digits without exponent and without closing zeros, so that 1, True, 1.0 and Decimal("1.00") are one."""
    if isinstance(value, int):
        return str(int(value))
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if not exact.is_finite():
        return str(exact)
    if abs(exact.adjusted()) > PART_LIMIT:  # before writing out a billion zeros
        raise InvalidKey(f"the primary key has more than {PART_LIMIT} digits")
    digits = f"{exact:f}"
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits
