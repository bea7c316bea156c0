"""What other processes do in the tests of this folder."""

from __future__ import annotations

from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from reservable import Reservation
from tests.sqlalchemy.models import Video


def first_use(number: int, url: str, pks: list[int]) -> bool:
    """The first reservation in a database without the table, every other one inside a transaction of the user's."""
    session = Session(create_engine(url))
    video = session.get_one(Video, pks[number])
    if number % 2:
        session.commit()
    granted = video.reserve("first", 600)
    session.close()
    return granted


def take_over(text: str, where: str) -> tuple[float, bool, bool]:
    """What a worker does with the handle that it was sent: check, extend and release it."""
    handle = Reservation.loads(text, where)
    handle.check()
    extended = handle.extend(3600)
    return handle.remaining, extended, handle.release()
