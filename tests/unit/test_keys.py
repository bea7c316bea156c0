from __future__ import annotations

import functools
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum, auto
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from reservable.errors import InvalidKey, ReservableError
from reservable.keys import key_text


class Purpose(StrEnum):
    DOWNLOAD = "download"


class OldPurpose(str, Enum):  # noqa: UP042
    DOWNLOAD = "download"


class Level(IntEnum):
    HIGH = 3


class Colour(Enum):
    RED = "#f00"


class Access(Flag):
    READ = auto()
    WRITE = auto()


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Command:
    def run(self) -> None: ...

    @classmethod
    def start(cls) -> None: ...

    class Inner: ...


class Later(Command): ...


class Day(date): ...


def work() -> None: ...


@functools.lru_cache
def remembered() -> None: ...


@functools.wraps(work)
def wrapping() -> None: ...


class ByAttribute:
    __reservation_key__ = "chosen"


class ByMethod:
    def __init__(self, colour: Colour) -> None:
        self.colour = colour

    def __reservation_key__(self) -> Colour:
        return self.colour


class ByProperty:
    @property
    def __reservation_key__(self) -> int:
        return 7


class ByClassMethod:
    @classmethod
    def __reservation_key__(cls) -> str:
        return f"the {cls.__name__}"


class ChosenColour(Enum):
    RED = "#f00"

    def __reservation_key__(self) -> str:
        return self.value


@dataclass
class Chosen:
    __reservation_key__: object


class Base(DeclarativeBase): ...


class Video(Base):
    __tablename__ = "videos"
    id: Mapped[int] = mapped_column(primary_key=True)


class DjangoLike:
    _meta = object()
    pk = 1


HERE = __name__


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("download", "download"),
        (" Down:load é\0", " Down:load é\0"),
        (Text("download"), "download"),
        (Purpose.DOWNLOAD, "download"),
        (OldPurpose.DOWNLOAD, "download"),
        (Level.HIGH, "HIGH"),
        (Colour.RED, "RED"),
        (Access.READ, "READ"),
        (0, "0"),
        (-7, "-7"),
        (10**30, "1" + "0" * 30),
        (UUID("{12345678-1234-5678-1234-56781234ABCD}"), "12345678-1234-5678-1234-56781234abcd"),
        (Command, f"{HERE}.Command"),
        (Command.Inner, f"{HERE}.Command.Inner"),
        (Command(), f"{HERE}.Command"),
        (Later(), f"{HERE}.Later"),
        (Command.run, f"{HERE}.Command.run"),
        (Command().run, f"{HERE}.Command.run"),
        (Later().run, f"{HERE}.Command.run"),
        (Command.start, f"{HERE}.Command.start"),
        (work, f"{HERE}.work"),
        (remembered, f"{HERE}.remembered"),
        (wrapping, f"{HERE}.work"),
        (Colour, f"{HERE}.Colour"),
        (Day(2027, 1, 1), f"{HERE}.Day"),
        (Video, f"{HERE}.Video"),
        (len, "builtins.len"),
        (date, "datetime.date"),
        (Path, "pathlib.Path"),
    ],
)
def test_the_text_of_a_key(key: object, text: str):
    assert key_text(key) == text
    assert type(key_text(key)) is str


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (ByAttribute, "chosen"),
        (ByAttribute(), "chosen"),
        (ByMethod(Colour.RED), "RED"),
        (ByMethod, f"{HERE}.ByMethod"),
        (ByProperty(), "7"),
        (ByProperty, f"{HERE}.ByProperty"),
        (ByClassMethod, "the ByClassMethod"),
        (ByClassMethod(), "the ByClassMethod"),
        (ChosenColour.RED, "#f00"),
        (Chosen(Purpose.DOWNLOAD), "download"),
        (Chosen(lambda: 5), "5"),
        (Chosen(None), f"{HERE}.Chosen"),
    ],
)
def test_an_object_or_class_may_choose_its_own_key(key: object, text: str):
    assert key_text(key) == text


@pytest.mark.parametrize("bad", [1.5, "", b"x", [], True, object(), lambda: None, "\ud800"])
def test_a_chosen_key_that_is_no_text_is_refused(bad: object):
    with pytest.raises(InvalidKey):
        key_text(Chosen(bad))


def make() -> tuple[object, ...]:
    class Local: ...

    def inner() -> None: ...

    return Local, Local(), inner


BAD = [
    *[
        "",
        "\ud800",
        "a\udfffb",
        Text(),
        None,
        True,
        False,
        1.5,
        float("nan"),
        1j,
        b"download",
        bytearray(b"x"),
    ],
    *[
        [],
        ["a"],
        (),
        ("a", 1),
        {},
        {"a": 1},
        set(),
        frozenset("a"),
        range(3),
        memoryview(b"x"),
        iter([]),
        slice(1),
    ],
    *[date(2027, 1, 1), datetime(2027, 1, 1, tzinfo=UTC), timedelta(1), Decimal(1), Fraction(1, 2)],
    *[
        Path("x"),
        PurePosixPath("x"),
        SimpleNamespace(a=1),
        functools.partial(work),
        object(),
        NotImplemented,
        ...,
    ],
    *[Video(id=1), DjangoLike(), lambda: None, [].append, "".join, sys, iter(()), *make()],
    *[Access(0), 10**5000, property()],
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_what_has_no_lasting_text_is_refused(bad: object):
    with pytest.raises(InvalidKey) as refusal:
        key_text(bad)
    assert isinstance(refusal.value, ValueError)
    assert isinstance(refusal.value, ReservableError)
    assert (
        "use " in str(refusal.value) or "reserved for" in str(refusal.value) or "decode" in str(refusal.value)
    )


def test_an_error_says_which_type_it_was():
    with pytest.raises(InvalidKey, match=r"pathlib\.\w+Path is a value"):
        key_text(Path("x"))
    with pytest.raises(InvalidKey, match=r"Video is a model instance"):
        key_text(Video(id=1))


PROGRAM = """
from reservable.keys import key_text

class Command: ...

if __name__ == "__main__":
    import multiprocessing
    print(key_text(Command), key_text(Command()), flush=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(key_text, [Command]))
"""


def run(folder: Path, *arguments: str) -> list[str]:
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout.split()


def test_a_module_started_by_python_m_has_its_real_name_also_in_spawned_processes(tmp_path: Path):
    (tmp_path / "nightly.py").write_text(PROGRAM)
    assert run(tmp_path, "-m", "nightly") == ["nightly.Command"] * 3


def test_a_script_has_no_other_name_than_main(tmp_path: Path):
    (tmp_path / "nightly.py").write_text(PROGRAM)
    assert run(tmp_path, "nightly.py") == ["__main__.Command"] * 3


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])))
def test_text_is_never_changed(text: str):
    assert key_text(text) == text


@given(st.text(alphabet=st.characters(categories=["Cs"]), min_size=1))
def test_lone_surrogates_are_always_refused(text: str):
    with pytest.raises(InvalidKey):
        key_text(text)


@given(st.integers(), st.uuids())
def test_numbers_and_uuids_keep_their_digits(number: int, uuid: UUID):
    assert int(key_text(number)) == number
    assert UUID(key_text(uuid)) == uuid
