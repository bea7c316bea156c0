"""How long: one reading of every argument that means time. A number is always seconds.

Text is read by libraries: pytimeparse2 ("6 hours", "1h30m", "1 day, 1:30:00"), isodate (ISO 8601 durations)
and dateutil (ISO 8601 instants, and calendar months and years, counted from now in UTC). The guards here only
refuse what those would misread: a sign inside the text, "1..5", "3M", "3mon", "1:30". Spaces around are ignored.

Every refusal is `InvalidDuration`. A Decimal is refused: say `float(value)`.
"""

from __future__ import annotations

import math
import re
import reprlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import isodate
import pytimeparse2
from dateutil.parser import isoparse
from dateutil.relativedelta import relativedelta

from reservable.errors import InvalidDuration

SHORTEST = timedelta(milliseconds=1)
LONGEST = timedelta(days=36_525)

_ZERO = timedelta(0)
_SHORTEST_SECONDS = SHORTEST.total_seconds()
_LONGEST_SECONDS = LONGEST.total_seconds()
_LONGEST_TEXT = 100  # characters: more than any duration needs, few for a regular expression
_EXAMPLES = "a duration is for example 90 (seconds), '+6 hours', '1h30m', 'PT6H' or timedelta(hours=6)"
_TOKENS = re.compile(r"[0-9.]+|[A-Za-z]+|[^0-9.A-Za-z ]")
_CALENDAR = {"mo", "mos", "mth", "mths", "month", "months", "y", "ys", "yr", "yrs", "year", "years"}
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def lifetime(value: object) -> timedelta:
    """Read how long a reservation or lease lives: from 1 ms to 100 years (36,525 days).

    Raise `InvalidDuration` for anything shorter, past, longer, endless or not a time at all.
    """
    if (type(value) is int or type(value) is float) and _SHORTEST_SECONDS <= value <= _LONGEST_SECONDS:
        return timedelta(0, value)
    span = value if type(value) is timedelta else _since(value, _read(value), None)
    if span < SHORTEST:
        raise _invalid(value, "is not at least 1 millisecond from now")
    return _bounded(value, span)


def moves(value: object) -> bool:
    """Whether a lifetime is another one at another time: an instant, or calendar months and years."""
    if type(value) is int or type(value) is float or type(value) is timedelta:
        return False
    return not isinstance(_read(value), timedelta)


def until(value: object) -> datetime | None:
    """The instant that was said, aware; None for a length."""
    said = _read(value)
    return said if isinstance(said, datetime) else None


def delay(value: object) -> timedelta:
    """Read how long to put something off: 0 to 100 years; an instant that is past means 0.

    Raise `InvalidDuration` for a negative delay and for whatever is not a time.
    """
    return _delay(value, None)


def wait(value: object) -> float:
    """Read how long to keep trying, as seconds: None and 0 are one try (0.0), `math.inf` has no limit.

    Raise `InvalidDuration` as `delay` does.
    """
    if value is None:
        return 0.0
    if isinstance(value, float) and value == math.inf:
        return math.inf
    return delay(value).total_seconds()


def instant(value: object, now: datetime | None = None) -> datetime:
    """Read when, as an aware datetime in UTC: an aware datetime, or a delay from `now`. The past means now.

    Raise `InvalidDuration` as `delay` does.
    """
    now = datetime.now(UTC) if now is None else now.astimezone(UTC)
    return now + _delay(value, now)


def _delay(value: object, now: datetime | None) -> timedelta:
    said = _read(value)
    span = _since(value, said, now)
    if span < _ZERO:
        if isinstance(said, datetime):
            return _ZERO
        raise _invalid(value, "is negative")
    return _bounded(value, span)


def _bounded(value: object, span: timedelta) -> timedelta:
    if span > LONGEST:
        raise _invalid(value, "is beyond 100 years (36,525 days)")
    return span


def _since(value: object, said: timedelta | relativedelta | datetime, now: datetime | None) -> timedelta:
    """Count from now, by the wall clock read once; in UTC, so no day has 23 or 25 hours."""
    if isinstance(said, timedelta):
        return said
    now = now or datetime.now(UTC)
    try:
        return said - now if isinstance(said, datetime) else now + said - now
    except (ArithmeticError, TypeError, ValueError) as error:
        raise _invalid(value, f"cannot be counted from now ({error})") from error


def _read(value: object) -> timedelta | relativedelta | datetime:
    """What was said, before it is known when now is."""
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, timedelta | relativedelta):
        return value
    if isinstance(value, datetime):
        return _aware(value, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return timedelta(seconds=value)
        except (OverflowError, ValueError) as error:
            raise _invalid(value, "is not a number of seconds within 100 years") from error
    raise _invalid(value, f"is {type(value).__name__}, not a time")


def _aware(value: object, moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise _invalid(value, "has no time zone; add an offset, or tzinfo=UTC")
    return moment


@lru_cache(maxsize=512)
def _text(text: str) -> timedelta | relativedelta | datetime:
    plain = " ".join(text.split()) if len(text) <= _LONGEST_TEXT else ""
    if not plain or not plain.isascii():
        raise _invalid(text, "is empty, longer than 100 characters, or not plain ASCII")
    unsigned = plain.removeprefix("+").lstrip()
    try:
        found = _iso_duration(unsigned) if unsigned.startswith("P") else _units(unsigned)
    except (ArithmeticError, TypeError, ValueError) as reason:
        try:
            moment = isoparse(plain)
        except (ArithmeticError, TypeError, ValueError):
            raise _invalid(text, f"cannot be read: {reason}") from reason
        return _aware(text, moment)
    return found


def _iso_duration(text: str) -> timedelta | relativedelta:
    """ISO 8601 with designators. isodate also takes "PT", "P1DT" and dates as durations: those end otherwise."""
    if text[-1] not in "YMWDHS":
        raise ValueError("an ISO 8601 duration has numbers with designators, as in 'P1DT12H'")
    found: Any = isodate.parse_duration(text, as_timedelta_if_possible=False)
    years, months = int(found.years), int(found.months)
    if (years, months) != (found.years, found.months):
        raise ValueError("a part of a month or year has no fixed length")
    rest: timedelta = found.tdelta
    if not years and not months:
        return rest
    return relativedelta(
        years=years, months=months, days=rest.days, seconds=rest.seconds, microseconds=rest.microseconds
    )


def _units(text: str) -> timedelta | relativedelta:
    """Numbers with units, a clock, or bare seconds, as pytimeparse2 documents them.

    It skips numbers such as "1..5", swallows any one character after "mo" and "yr", takes "1:30" for minutes and
    "3M" for "3m", and knows no comma after seconds; its months are 30 days unless asked for a relativedelta.
    """
    tokens = _TOKENS.findall(text)
    for token in tokens:
        if token[0] in "0123456789.":
            float(token)
        elif not token.isalpha() and token not in {",", ":"}:
            raise ValueError(f"{token!r} has no place in a duration")
    if "M" in tokens:
        raise ValueError("'M' could be minutes or months; write 'm' or 'months'")
    if tokens.count(":") == 1:
        raise ValueError("a clock has hours, minutes and seconds, as in '1:30:00'")
    calendar = {word for word in map(str.lower, tokens) if word.startswith(("mo", "mt", "y"))}
    if calendar - _CALENDAR:
        raise ValueError("write months as 'months' and years as 'years'")
    spaced = re.sub(r"(?<=[A-Za-z])(?=[0-9.])", " ", text.replace(",", " "))
    found = pytimeparse2.parse(spaced, as_timedelta=bool(calendar))
    if calendar and isinstance(found, relativedelta):
        return found
    if not calendar and isinstance(found, int | float):
        return timedelta(seconds=found)
    raise ValueError("units are written once each, from the largest to the smallest")


def _invalid(value: object, why: str) -> InvalidDuration:
    try:
        shown = _SHORT.repr(value)
    except ValueError:  # Python does not print an int of more than 4,300 digits
        shown = f"<{type(value).__name__}>"
    return InvalidDuration(f"{shown} {why}; {_EXAMPLES}")
