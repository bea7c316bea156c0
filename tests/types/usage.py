"""Never run: the public API as its users write it, for the type checkers to look at."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from typing import assert_type

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from reservable import (
    AsyncReservation,
    Backend,
    Holder,
    Reservable,
    Reservation,
    aeach_reserved,
    afirst_reserved,
    afirst_reserved_of,
    areservation,
    atake_reserved,
    configure,
    each_reserved,
    first_reserved,
    first_reserved_of,
    reservation,
    reserving,
    take_reserved,
)


class Base(DeclarativeBase):
    pass


class Video(Reservable, Base):
    __tablename__ = "videos"
    id: Mapped[int] = mapped_column(primary_key=True)


def blocking(session: Session, video: Video) -> None:
    assert_type(configure("redis://localhost", prefix="shop:"), Backend)
    assert_type(configure(session.get_bind().engine, notify=True).prune(), int)
    assert_type(configure(), Backend | None)
    assert_type(video.reserve("download", "+6 hours", wait=math.inf), bool)
    assert_type(video.release("download"), bool)
    assert_type(video.is_reserved(Video), bool)
    with video.reservation(
        "download", timedelta(hours=1), renew=True, on_error="keep", on_lost=print, at_least=5
    ) as held:
        assert_type(held, Reservation)
        assert_type(held.lost, threading.Event)
        assert_type(held.holder(), Holder | None)
        assert_type(held.expires_at, datetime | None)
        assert_type(held.fence, int | None)
        assert_type(held.remaining, float)
    assert_type(Reservation.loads(held.dumps()), Reservation)
    assert_type(Video.unreserved("download"), ColumnElement[bool])
    assert_type(first_reserved(session, select(Video), "download"), Video | None)
    assert_type(take_reserved(session, select(Video), "download", limit=3), list[Video])
    assert_type(each_reserved(session, select(Video), "download"), Iterator[Video])
    assert_type(first_reserved_of([video], "download"), Video | None)
    assert_type(reservation("nightly", wait="5s"), Reservation)


async def awaited(session: AsyncSession, video: Video) -> None:
    assert_type(await configure(create_async_engine("sqlite+aiosqlite:///x")).prune(), int)
    assert_type(await video.areserve("download", "+6 hours", wait=math.inf), bool)
    assert_type(await video.arelease("download"), bool)
    assert_type(await video.ais_reserved(Video), bool)
    async with video.areservation("download", 60, renew=True) as held:
        assert_type(held, AsyncReservation)
        assert_type(held.lost, asyncio.Event)
        assert_type(await held.holder(), Holder | None)
        assert_type(await held.extend("1 hour"), bool)
    assert_type(AsyncReservation.loads(held.dumps()), AsyncReservation)
    assert_type(await afirst_reserved(session, select(Video), "download"), Video | None)
    assert_type(await atake_reserved(session, select(Video), "download", limit=3), list[Video])
    assert_type(aeach_reserved(session, select(Video), "download"), AsyncIterator[Video])
    assert_type(await afirst_reserved_of([video], "download"), Video | None)
    async with areservation("nightly", "1 hour", at_least="1 minute") as nightly:
        assert_type(nightly, AsyncReservation)


@reserving("report", "1 hour")
def report(number: int) -> str:
    return str(number)


@reserving("report", "1 hour", renew=True)
async def areport(number: int) -> str:
    return str(number)


@reserving("report", "1 hour", refused="skip")
def perhaps(number: int) -> str:
    return str(number)


async def functions() -> None:
    assert_type(report(1), str)
    assert_type(await areport(1), str)
    perhaps(1)
