from __future__ import annotations

import unicodedata
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from itertools import product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reservable.errors import ConfigurationError, InvalidKey, UnidentifiedInstance
from reservable.names import (
    check_prefix,
    chosen_model,
    decode,
    encode,
    pk_parts,
    pk_text,
    plain_name,
    row_name,
    split,
    table_model,
)

A_UUID = UUID("12345678-1234-5678-1234-56781234ABCD")


class Colour(Enum):
    RED = "#f00"


class Code(StrEnum):
    A = "a1"


class Number(IntEnum):
    SEVEN = 7


GOLDEN = [
    (("videos", None), (249,), "download", "videos:249:download"),
    (("videos", None), (-1,), "+6 hours", "videos:-1:%2B6%20hours"),
    (("videos", "media"), (249,), "download", "media.videos:249:download"),
    (("media.videos", None), (249,), "download", "media%2Evideos:249:download"),
    (("Videos", None), ("Ab_c-d.e~f",), "Job", "Videos:Ab_c-d.e~f:Job"),
    (("videos", None), (A_UUID,), A_UUID, f"videos:{A_UUID}:{A_UUID}"),
    (("lines", None), (1, 23), 7, "lines:1,23:7"),
    (("lines", None), (12, 3), 7, "lines:12,3:7"),
    (("lines", None), ("1,23",), "a:b", "lines:1%2C23:a%3Ab"),
    (("t", None), ("é",), "e\u0301", "t:%C3%A9:e%CC%81"),
    (("t", None), ("\U0001f512",), "{Test}:x", "t:%F0%9F%94%92:%7BTest%7D%3Ax"),
    (("t", None), ("a ",), "100%", "t:a%20:100%25"),
    (("t", None), (b"\x00\xffA",), "a\0", "t:%00%FFA:a%00"),
    (("t", None), (date(2027, 1, 31),), "a/b", "t:2027-01-31:a%2Fb"),
    (("t", None), (datetime(2027, 1, 31, 12, 0, tzinfo=UTC),), "k", "t:2027-01-31T12%3A00%3A00%2B00%3A00:k"),
    (("t", None), (Decimal("1.50"),), Colour.RED, "t:1.5:RED"),
    (("t", None), (True, "x"), date, "t:1,x:datetime.date"),
]


@pytest.mark.parametrize(("table", "pk", "key", "name"), GOLDEN)
def test_the_layout_of_names_never_changes(
    table: tuple[str, str | None], pk: tuple[object], key: object, name: str
):
    assert row_name(table_model(*table), pk_text(pk), key) == name


def test_a_name_without_a_model_is_one_encoded_part():
    assert plain_name("nightly-report") == "nightly-report"
    assert plain_name("videos:249:download") == "videos%3A249%3Adownload"
    assert plain_name(Colour.RED) == "RED"


TEXTS = [
    "a",
    "A",
    "a ",
    "a\t",
    " a",
    "\u00e9",
    "e\u0301",
    "e",
    "ss",
    "\u00df",
    "\U0001f512",
    "\0",
    "%",
    "%25",
    "25",
]
TEXTS += ["}{", "{}", "{a}{b}", "{Test}:x", ":", "a:b", ",", "a,b", ".", "a.b", "*", "\uff41", "%C3%A9"]


def test_texts_that_stores_take_for_equal_have_names_of_their_own():
    triples = [*product(TEXTS, TEXTS, TEXTS)]
    assert len({row_name(table_model(m), pk_text([p]), k) for m, p, k in triples}) == len(triples)
    assert len({plain_name(text) for text in TEXTS}) == len(TEXTS)


def test_a_million_rows_have_a_million_names():
    uuids = [UUID(int=number * (2**97 + 1)) for number in range(250_000)]
    names = {row_name("videos", pk_text([uuid]), key) for uuid in uuids for key in ("a", "b", "A", "a ")}
    assert len(names) == 1_000_000


unicode = st.text(max_size=6, alphabet=st.characters(exclude_categories=["Cs"]))
separators = st.text(max_size=6, alphabet=":,%.25aAe\u0301\u00e9 {}\0/\\*")
texts = unicode | separators
keys = texts.filter(bool)


@given(keys, st.none() | keys, st.lists(texts, min_size=1, max_size=3), keys)
def test_a_name_gives_back_what_it_was_made_of_so_no_two_triples_share_one(
    table: str, schema: str | None, pk: list[str], key: str
):
    parts = split(row_name(table_model(table, schema), pk_text(pk), key))
    assert parts is not None
    assert [decode(part) for part in parts[0].split(".")] == ([table] if schema is None else [schema, table])
    assert pk_parts(parts[1]) == pk
    assert decode(parts[2]) == key


triples = st.tuples(keys, st.lists(texts, min_size=1, max_size=2), keys)


@given(triples, triples)
def test_names_are_equal_only_when_the_triples_are(
    one: tuple[str, list[str], str], two: tuple[str, list[str], str]
):
    names = [row_name(chosen_model(model), pk_text(pk), key) for model, pk, key in (one, two)]
    assert (names[0] == names[1]) == (one == two)


@given(keys)
def test_names_are_plain_ascii_and_forms_of_unicode_stay_apart(text: str):
    assert plain_name(text).isascii()
    assert plain_name(text).isprintable()
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert (plain_name(composed) == plain_name(decomposed)) == (composed == decomposed)


@given(
    st.lists(st.binary(max_size=20), min_size=1, max_size=3),
    st.lists(st.binary(max_size=20), min_size=1, max_size=3),
)
def test_bytes_as_primary_keys_stay_apart(one: list[bytes], two: list[bytes]):
    assert (pk_text(one) == pk_text(two)) == (one == two)


@pytest.mark.parametrize(
    ("same", "text"),
    [
        ([1, True, Decimal(1), Decimal("1.00"), 1.0], "1"),
        ([0, False, Decimal("-0.0"), -0.0], "0"),
        ([7, Number.SEVEN, Decimal("7E0")], "7"),
        ([Decimal("1.50"), Decimal("1.5"), Decimal("1.5E0"), Decimal("15E-1"), 1.5], "1.5"),
        ([Decimal("1E+3"), 1000, 1e3], "1000"),
        ([Decimal("1E-7"), 1e-7, Decimal("0.00000010")], "0.0000001"),
        ([Decimal("123456789012345678901234567890.10")], "123456789012345678901234567890.1"),
        ([0.1], "0.1"),
        ([A_UUID, UUID(str(A_UUID).upper())], "12345678-1234-5678-1234-56781234abcd"),
        (["a1", Code.A], "a1"),
        ([Colour.RED], "RED"),
        ([b"a\xff", bytearray(b"a\xff"), memoryview(b"a\xff")], "a%FF"),
        ([time(1, 2)], "01%3A02%3A00"),
        ([datetime(2027, 1, 1, 1)], "2027-01-01T01%3A00%3A00"),  # noqa: DTZ001
        (
            [
                datetime(2027, 1, 1, 1, tzinfo=UTC),
                datetime(2027, 1, 1, 2, tzinfo=timezone(timedelta(hours=1))),
            ],
            "2027-01-01T01%3A00%3A00%2B00%3A00",
        ),
    ],
)
def test_equal_primary_keys_give_equal_text_however_they_are_typed(same: list[object], text: str):
    assert {pk_text([value]) for value in same} == {text}


@given(st.integers(-(2**53), 2**53))
def test_a_whole_number_is_one_key_in_every_numeric_type(number: int):
    assert pk_text([number]) == pk_text([Decimal(number)]) == pk_text([float(number)]) == str(number)


@pytest.mark.parametrize("pk", [(), [], (None,), (1, None), (None, None)])
def test_an_incomplete_primary_key_identifies_nothing(pk: tuple[object, ...]):
    with pytest.raises(UnidentifiedInstance):
        pk_text(pk)


def test_parts_of_a_composite_key_cannot_run_together():
    pks: list[tuple[object, ...]] = [
        (1, 23),
        (12, 3),
        (123,),
        ("1,23",),
        ("1", "", "23"),
        ("", ""),
        ("",),
        (",",),
    ]
    assert len({pk_text(pk) for pk in pks}) == len(pks)


def test_a_part_of_255_bytes_fits_and_a_longer_one_is_refused_by_name():
    assert plain_name("k" * 255) == "k" * 255
    assert encode("\u00e9" * 42) == "%C3%A9" * 42
    for key in ("k" * 256, "\u00e9" * 43):
        with pytest.raises(InvalidKey, match="the key takes"):
            row_name("t", "1", key)
    with pytest.raises(InvalidKey, match="the key takes"):
        plain_name(10**255)
    for pk in (
        ["p" * 256],
        ["p" * 127, "p" * 128],
        [10**255],
        [Decimal("1E+999999999")],
        [Decimal("1E-999999")],
    ):
        with pytest.raises(InvalidKey, match="the primary key"):
            pk_text(pk)
    with pytest.raises(InvalidKey, match="the table name takes"):
        table_model("t" * 128, "s" * 127)
    with pytest.raises(InvalidKey, match="the model name takes"):
        chosen_model("m" * 256)


def test_lone_surrogates_are_refused_in_every_part():
    for call in (encode, chosen_model, table_model, plain_name, lambda text: pk_text([text])):
        with pytest.raises(InvalidKey):
            call("a\ud800")


def test_keys_that_are_equal_in_python_are_not_mixed_up():
    assert row_name("t", "1", 1) == "t:1:1"
    with pytest.raises(InvalidKey):
        row_name("t", "1", True)
    with pytest.raises(InvalidKey):
        row_name("t", "1", 1.0)


@pytest.mark.parametrize("bad", ["", None, 5])
def test_a_chosen_model_name_must_be_text(bad: object):
    with pytest.raises(InvalidKey, match="__reservable_name__"):
        chosen_model(bad)


def test_a_schema_is_no_part_of_a_table_name():
    assert table_model("b", "a") == "a.b" != table_model("a.b") == "a%2Eb"
    assert table_model("b", "") == table_model("b") == "b"


@pytest.mark.parametrize("name", ["", "nightly", "a:b", "a:b:", ":b:c", "a:b:c:d", "::"])
def test_only_the_name_of_a_row_is_split(name: str):
    assert split(name) is None


def test_the_primary_key_of_a_name_may_be_empty_text():
    assert split(row_name("t", pk_text([""]), "k")) == ("t", "", "k")


def test_bytes_that_are_no_text_are_shown_as_escapes():
    assert pk_parts(pk_text([b"a\xff", 1])) == ["a\\xff", "1"]


@pytest.mark.parametrize("prefix", ["", "shop:", "a", "{shop}:", "a-b_c.d~e/f", "x" * 64])
def test_a_prefix_of_harmless_characters_is_kept(prefix: str):
    assert check_prefix(prefix) == prefix


@pytest.mark.parametrize(
    "prefix", ["x" * 65, "a b", "a\t", "a\n", "\u00e9", "a\x7f", "\0", *"%*?[]\\", None, b"a", 5]
)
def test_any_other_prefix_is_a_configuration_error(prefix: object):
    with pytest.raises(ConfigurationError):
        check_prefix(prefix)
