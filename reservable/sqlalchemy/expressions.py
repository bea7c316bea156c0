"""SQL that tells which rows are reserved, for statements of the user's own."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, bindparam, exists, inspect
from sqlalchemy.orm import Mapper

from reservable import names
from reservable.backends.database.clock import clock
from reservable.backends.database.naming import name_in_sql
from reservable.errors import NotSupported
from reservable.sqlalchemy.homes import table_of
from reservable.sqlalchemy.identity import Identity, identity_of

NOBODYS = -1
"""No grant has this fence."""


def reserved(entity: Any, key: Any) -> ColumnElement[bool]:
    """Rows of a mapped class, or an alias of one, that are reserved now, as the caller's transaction sees it.

    Raises `InvalidKey`, and `NotSupported` where SQL cannot tell.
    """
    inspected: Any = inspect(entity)
    mapper: Mapper[Any] = inspected.mapper
    identity = identity_of(mapper)
    must_be_in_sql(identity)
    table, prefix = table_of(mapper.class_)
    held = table.alias()
    columns = [getattr(entity, attribute) for attribute in identity.attributes]
    plain = names.plain_name(key)
    name = name_in_sql(identity, columns, plain, prefix)
    ours = bindparam(but_ours(identity, plain), [NOBODYS], BigInteger(), expanding=True)
    theirs = held.c.fence.not_in(ours)
    return exists().where(held.c.name == name, held.c.until > clock(), theirs).correlate_except(held)


def unreserved(entity: Any, key: Any) -> ColumnElement[bool]:
    """The rows that are not: see `reserved`."""
    return ~reserved(entity, key)


def but_ours(identity: Identity, key: str) -> str:
    """The parameter for the fences of grants that do not count: whoever was just granted rows reads them again by it."""
    return (
        f"reservable_ours_{sha1(f'{identity.model}:{key}'.encode(), usedforsecurity=False).hexdigest()[:16]}"
    )


def must_be_in_sql(identity: Identity) -> None:
    """Raises `NotSupported` for primary keys whose text SQL cannot compute."""
    if not identity.in_sql:
        types = ", ".join(repr(column.type) for column in identity.columns)
        raise NotSupported(
            f"SQL cannot compute the names of {identity.mapper.class_.__name__}'s reservations from its primary key "
            f"({types}): integers, UUIDs and text can; first_reserved() and is_reserved() work with every type"
        )
