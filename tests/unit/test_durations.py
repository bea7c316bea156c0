from __future__ import annotations

import contextlib
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import pytest
import pytimeparse2
from dateutil.relativedelta import relativedelta
from hypothesis import given
from hypothesis import strategies as st

from reservable.durations import delay, instant, lifetime, wait
from reservable.errors import InvalidDuration, ReservableError

NAIVE = datetime(2999, 1, 1)  # noqa: DTZ001
JANUARY_31 = datetime(2027, 1, 31, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
MS = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (60, MINUTE),
        (1.5, 1.5 * SECOND),
        (0.001, MS),
        (36_525 * 86_400, 36_525 * DAY),
        (6 * HOUR, 6 * HOUR),
        ("+6 hours", 6 * HOUR),
        ("+ 6 hours", 6 * HOUR),
        ("6h", 6 * HOUR),
        ("6 HOURS", 6 * HOUR),
        ("1 day, 2 hours", 26 * HOUR),
        ("1h30m", 90 * MINUTE),
        ("90", 90 * SECOND),
        ("+90", 90 * SECOND),
        ("0.5", 500 * MS),
        ("1:30:00", 90 * MINUTE),
        ("1 day, 1:30:00.25", DAY + 90 * MINUTE + 250 * MS),
        ("500ms", 500 * MS),
        ("30 s, 500 ms", 30 * SECOND + 500 * MS),
        ("2 weeks", 14 * DAY),
        ("3m", 3 * MINUTE),
        ("3 min", 3 * MINUTE),
        ("PT6H", 6 * HOUR),
        ("+PT6H", 6 * HOUR),
        ("P1DT12H", 36 * HOUR),
        ("PT0,5H", 30 * MINUTE),
        ("P2W", 14 * DAY),
        ("PT0.001S", MS),
    ],
)
def test_a_lifetime_is_read_exactly(said: object, meant: timedelta):
    assert lifetime(said) == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("1.5m30s", 120 * SECOND),
        ("1m30.5s", 90.5 * SECOND),
        ("1.5h30m", 2 * HOUR),
        ("2w1.5d", 15.5 * DAY),
        ("2w 1.5 days", 15.5 * DAY),
    ],
)
def test_fractions_and_smaller_units_add_up(said: str, meant: timedelta):
    assert lifetime(said) == meant


@pytest.mark.parametrize(
    "said",
    [
        *[
            "-1.5m30s",
            "-1s",
            "- 5m",
            "+-5m",
            "1h-5m",
            "1mo-5s",
            "-90",
            "-PT1H",
            "PT-1H",
            "-00:01:01",
            "00:-01:-01",
        ],
        *[
            "-1:15:30",
            "-1 day, 23:59:59",
            "9-0",
            -1,
            -0.001,
            timedelta(seconds=-1),
            timedelta(microseconds=-1),
        ],
        *[relativedelta(months=-1), relativedelta(days=-1), -math.inf],
    ],
)
def test_every_negative_form_is_refused(said: object):
    with pytest.raises(InvalidDuration):
        lifetime(said)
    with pytest.raises(InvalidDuration):
        delay(said)


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("1 month", datetime(2027, 2, 28, 12, tzinfo=UTC)),
        ("3 months", datetime(2027, 4, 30, 12, tzinfo=UTC)),
        ("3mo", datetime(2027, 4, 30, 12, tzinfo=UTC)),
        ("1y", datetime(2028, 1, 31, 12, tzinfo=UTC)),
        ("1 year, 1 month", datetime(2028, 2, 29, 12, tzinfo=UTC)),
        ("1mo55s", datetime(2027, 2, 28, 12, 0, 55, tzinfo=UTC)),
        ("1yr12h", datetime(2028, 2, 1, tzinfo=UTC)),
        ("P1M", datetime(2027, 2, 28, 12, tzinfo=UTC)),
        ("P1Y2M1DT1.5S", datetime(2028, 4, 1, 12, 0, 1, 500_000, tzinfo=UTC)),
        (relativedelta(months=1), datetime(2027, 2, 28, 12, tzinfo=UTC)),
        (relativedelta(years=1, hours=1), datetime(2028, 1, 31, 13, tzinfo=UTC)),
    ],
)
def test_months_and_years_are_those_of_the_calendar(said: object, end: datetime):
    assert instant(said, JANUARY_31) == end


def test_a_lifetime_of_calendar_months_is_counted_from_now():
    assert 28 * DAY <= lifetime("1 month") <= 31 * DAY
    assert 89 * DAY <= lifetime("3 months") <= 92 * DAY
    assert 89 * DAY <= lifetime(relativedelta(months=3)) <= 92 * DAY


def test_months_stay_calendar_months_when_another_package_switches_them_off_in_the_parser():
    pytimeparse2.disable_dateutil()
    try:
        assert lifetime("6h") == 6 * HOUR
        with pytest.raises(InvalidDuration):
            lifetime("2 months")
        with pytest.raises(InvalidDuration):
            lifetime("1 month 7 days")
    finally:
        pytimeparse2.enable_dateutil()


BAD = [
    *[None, True, False, 0, 0.0, timedelta(0), math.nan, math.inf, Decimal("1.5"), Fraction(1, 2), 1j],
    *[b"5m", bytearray(b"5m"), [], (60,), {}, object(), date(2999, 1, 1), time(1), NAIVE],
    *["", " ", "\n", ".", ". day", "1..5m", "1..5s", "2h 1..5s", "2h . s", "1.2.3w 1d", "1h.", "day", "h"],
    *[
        "nan",
        "inf",
        "infinity",
        "1e3",
        "1e3s",
        "1_000",
        "0x10",
        "|5m",
        "++5m",
        "5m+",
        "6h/day",
        "five minutes",
    ],
    *["\uff15m", "\u0665m", "\uff11\uff10", "5\u00b2", "5m\x00", "\ud8005m", "6 h\u00f6urs"],
    *["3M", "1H30M", "3mon", "3 mons", "3mox", "1yrx", "1.5 months", "0.5y", "P0.5M", "P1.5Y"],
    *["5m5m", "1 hour 2 hours", "5m 1h", "1 hour 30", "1 000 s", "1,5h"],
    *["1:30", ":22", "4 15:30", "1:2:3", "1::00", "1:30:00:00:00"],
    *["P", "PT", "P1DT", "P12M4M", "PT12M3M1M", "PT5", "P5", "PT1e3S", "P1S", "PT1D", "pt6h", "PT1.2.3S"],
    *["P0001-01-01T00:00:00", "P0001045T000000", "P00010101T000000Z", "P1D/2030-01-01T00:00Z"],
    *["PT999900000000000000000000000000000002S", "PT4294967297M", "P99999999999999999999Y", "9" * 400],
    *["99999999999999999999 years", "9" * 50 + "d", "1" + "0" * 98 + "s"],
    *["0", "0s", "PT0S", "0:00:00", "0.0004s", "0.9ms", 0.0004, 0.000999, timedelta(microseconds=400)],
    *[36_525 * 86_400 + 1, 10**5000, 2.0**200, timedelta.max, timedelta(days=36_525, microseconds=1)],
    *["101 years", "36526 days", relativedelta(years=101), relativedelta(years=10**20), relativedelta()],
    *["2999-01-01", "2999-01-01T00:00:00", "2030-02-30T00:00:00Z", "2030-01-01T00:00:00Z junk"],
    *["2020-01-01T00:00:00Z", datetime(2020, 1, 1, tzinfo=UTC), datetime.min.replace(tzinfo=UTC)],
    *["9999-12-31T23:59:59Z", datetime.max.replace(tzinfo=UTC)],
]


@pytest.mark.parametrize(
    "bad", BAD, ids=lambda bad: ascii(bad)[:30] if isinstance(bad, str) else type(bad).__name__
)
def test_what_is_no_lifetime_is_one_kind_of_error(bad: object):
    with pytest.raises(InvalidDuration) as refusal:
        lifetime(bad)
    assert isinstance(refusal.value, ValueError)
    assert isinstance(refusal.value, ReservableError)
    assert "+6 hours" in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_white_space_around_and_between_is_ignored():
    assert lifetime("\t5 m\n") == 5 * MINUTE
    assert lifetime("1  day ,  2\nhours") == 26 * HOUR


def test_long_but_possible_lifetimes_are_exact():
    assert lifetime(timedelta(days=36_500)) == timedelta(days=36_500)
    assert lifetime(2**31) == timedelta(seconds=2**31)
    assert lifetime("PT2147483648S") == timedelta(seconds=2**31)


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-9, minutes=-30))])
def test_an_aware_moment_is_a_lifetime_until_then(zone: timezone):
    end = (datetime.now(UTC) + HOUR).astimezone(zone)
    assert HOUR - MINUTE < lifetime(end) <= HOUR
    assert HOUR - MINUTE < lifetime(end.isoformat()) <= HOUR
    assert HOUR - MINUTE < lifetime(str(end)) <= HOUR


def test_text_of_a_moment_is_read_again_each_time():
    text = (datetime.now(UTC) + HOUR).isoformat()
    assert lifetime(text) > lifetime(text)


def test_a_moment_without_a_zone_says_what_is_missing():
    with pytest.raises(InvalidDuration, match="add an offset"):
        lifetime("2999-01-01T00:00:00")


def test_text_of_a_python_timedelta_is_read_back():
    for span in (90 * MINUTE, 26 * HOUR, 3 * DAY + 7 * SECOND, HOUR + timedelta(microseconds=1)):
        assert lifetime(str(span)) == span


def test_a_subclass_of_text_or_number_counts_as_its_base():
    class Text(str):
        __slots__ = ()

        def split(self, *_: object) -> list[str]:
            return ["nonsense"]

    class Seconds(float):
        __slots__ = ()

    assert lifetime(Text("6h")) == 6 * HOUR
    assert lifetime(Seconds(1.5)) == 1.5 * SECOND


def test_a_delay_may_be_zero_and_a_past_moment_is_zero():
    past = datetime.now(UTC) - SECOND
    for said in (0, 0.0, "0", "0s", "PT0S", timedelta(0), relativedelta(), past, past.isoformat()):
        assert delay(said) == timedelta(0)
    assert delay(0.0004) == timedelta(microseconds=400)
    assert delay("+6 hours") == 6 * HOUR


@pytest.mark.parametrize("bad", [None, True, math.nan, math.inf, "", "soon", NAIVE, timedelta.max, b"0"])
def test_a_delay_refuses_what_is_no_time(bad: object):
    with pytest.raises(InvalidDuration):
        delay(bad)


def test_a_wait_is_seconds_and_may_be_endless():
    assert [wait(None), wait(0), wait(1.5), wait("1m"), wait(math.inf)] == [0.0, 0.0, 1.5, 60.0, math.inf]
    for bad in (-1, -math.inf, math.nan, True, "inf", Decimal(1)):
        with pytest.raises(InvalidDuration):
            wait(bad)


def test_an_instant_is_a_moment_in_utc_or_a_delay_from_now():
    later = datetime(2027, 2, 1, 2, tzinfo=timezone(2 * HOUR))
    assert instant(later, JANUARY_31) == later
    assert instant(later, JANUARY_31).utcoffset() == timedelta(0)
    assert instant("2027-02-01T02:00:00+02:00", JANUARY_31) == later
    assert instant("6h", JANUARY_31) == JANUARY_31 + 6 * HOUR
    assert instant(0, JANUARY_31) == JANUARY_31
    assert instant(JANUARY_31 - DAY, JANUARY_31) == JANUARY_31
    assert datetime.now(UTC) <= instant(MINUTE) <= datetime.now(UTC) + MINUTE


@pytest.mark.parametrize("bad", [None, True, -1, "", NAIVE, "2999-01-01T00:00:00", math.inf])
def test_an_instant_refuses_what_is_no_moment(bad: object):
    with pytest.raises(InvalidDuration):
        instant(bad)


UNITS = {"w": 604_800_000, "days": 86_400_000, "hrs": 3_600_000, "m": 60_000, "sec": 1_000, "ms": 1}


@given(
    st.dictionaries(st.sampled_from(list(UNITS)), st.integers(1, 2_000), min_size=1),
    st.sampled_from(["", " ", ", "]),
)
def test_text_put_together_from_units_is_exact(amounts: dict[str, int], gap: str):
    text = gap.join(f"{amounts[unit]}{unit}" for unit in UNITS if unit in amounts)
    assert lifetime(text) == sum(amount * UNITS[unit] for unit, amount in amounts.items()) * MS


@given(st.integers(1, 10_000_000), st.sampled_from(["h", "minutes", "s"]))
def test_decimal_fractions_are_exact(thousandths: int, unit: str):
    factor = {"h": 3_600, "minutes": 60, "s": 1}[unit]
    assert lifetime(f"{thousandths / 1000:.3f}{unit}") == thousandths * factor * MS


@given(st.timedeltas(min_value=MS, max_value=36_525 * DAY))
def test_iso_durations_are_exact_to_the_microsecond(span: timedelta):
    text = f"P{span.days}DT{span.seconds}.{span.microseconds:06}S"
    assert lifetime(text) == span
    assert lifetime(span) == span


@given(st.floats(min_value=0.001, max_value=36_525 * 86_400))
def test_a_number_is_never_cut_by_more_than_a_millisecond(seconds: float):
    assert abs(
        Fraction(lifetime(seconds) // timedelta(microseconds=1), 10**6) - Fraction(seconds)
    ) < Fraction(1, 1000)


@given(
    st.text(alphabet="0123456789.:,+- PTMDHSYWmshdwoynr\t_eE|\uff15\u0665", max_size=10)
    | st.text(max_size=10)
)
def test_any_text_is_a_positive_lifetime_or_refused(text: str):
    with contextlib.suppress(InvalidDuration):
        assert MS <= lifetime(text) <= 36_525 * DAY


@given(
    st.none()
    | st.booleans()
    | st.binary()
    | st.decimals()
    | st.complex_numbers()
    | st.datetimes()
    | st.dates()
)
def test_no_other_type_is_a_lifetime(bad: object):
    with pytest.raises(InvalidDuration):
        lifetime(bad)
