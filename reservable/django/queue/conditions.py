"""What a queryset asks of its rows, as a condition for statements that SQLAlchemy writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db.models.query import ModelIterable
from sqlalchemy import bindparam, false, text
from sqlalchemy.types import NullType

from reservable.errors import NotSupported

_PLACES = re.compile(r"%%|%s|:")


def conditions(queryset: Any, alias: str) -> tuple[Any, ...]:
    """The conditions of its filters; its order is the queue's own.

    Raises `NotSupported`, naming the clause, for querysets that are more than conditions on rows of one table.
    """
    query = queryset.query
    for clause, present in (
        ("a slice", query.is_sliced),
        ("distinct()", query.distinct),
        (f"{query.combinator}()", bool(query.combinator)),
        ("an aggregate (GROUP BY)", query.group_by is not None),
        ("select_for_update()", query.select_for_update),
        ("values()", queryset._fields is not None or not issubclass(queryset._iterable_class, ModelIterable)),
    ):
        if present:
            raise NotSupported(f"a queryset with {clause} is no condition for a claim: leave it out")
    if query.where.contains_over_clause:
        raise NotSupported("a filter with a window function is no condition for a claim: leave it out")
    query = query.clone()
    query.clear_ordering(force=True)
    compiler = query.get_compiler(using=alias)
    compiler.setup_query()
    try:
        sql, parameters = compiler.compile(query.where)
    except EmptyResultSet:
        return (false(),)
    except FullResultSet:
        return ()
    if _joins(query):
        raise NotSupported(
            "the filter joins another table, which would give a row once for each of its partners: ask by Exists(), or "
            "by pk__in"
        )
    return (_written(sql, parameters),) if sql else ()


def is_more_than_filters(queryset: Any) -> bool:
    """Whether one row of the model may come more than once in it, or be left out."""
    query = queryset.query
    return bool(
        query.is_sliced or query.distinct or query.combinator or query.group_by is not None or _joins(query)
    )


def _joins(query: Any) -> bool:
    return sum(1 for alias in query.alias_map if query.alias_refcount[alias]) > 1


def _written(sql: str, parameters: Any) -> Any:
    values: list[Any] = [
        bindparam(f"reservable_where_{number}", value, NullType()) for number, value in enumerate(parameters)
    ]
    names = iter(values)
    # SQLAlchemy takes a colon for the beginning of a parameter; Django has doubled what is no parameter of its own.
    marks: dict[str, Callable[[], Any]] = {
        "%%": lambda: "%",
        "%s": lambda: f":{next(names).key}",
        ":": lambda: "\\:",
    }
    return text(f"({_PLACES.sub(lambda found: str(marks[found[0]]()), sql)})").bindparams(*values)
