"""However the server plans the search, it reserves no more rows than were asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import select, text

from reservable import first_reserved, take_reserved
from tests.sqlalchemy.finding.models import Author, Video
from tests.sqlalchemy.finding.worlds import World, fresh_engine

ROWS = 10_000
TOGGLES = ["hashjoin", "nestloop", "seqscan", "indexscan", "sort", "material"]


@pytest.fixture(params=["no statistics", "analyzed"])
def big(request: pytest.FixtureRequest, postgresql: World) -> Iterator[World]:
    """Ten thousand videos by a hundred authors."""
    postgresql.run("INSERT INTO authors (id, name) SELECT n, 'author ' || n FROM generate_series(1, 100) n")
    postgresql.run(
        "INSERT INTO videos (id, title, rank, author_id) "
        f"SELECT n, 'video', n * 7919 % {ROWS}, n % 100 + 1 FROM generate_series(1, {ROWS}) n"
    )
    if request.param == "analyzed":
        postgresql.run("ANALYZE videos")
        postgresql.run("ANALYZE authors")
    yield postgresql
    postgresql.run("TRUNCATE videos, authors CASCADE")  # row by row it would take a while


def held(world: World) -> int:
    with world.engine.connect() as connection:
        return int(
            connection.execute(text("SELECT count(*) FROM reservations WHERE token <> ''")).scalar_one()
        )


def test_no_more_rows_are_reserved_than_asked_for_however_it_is_planned(big: World):
    by_rank = select(Video).order_by(Video.rank)
    statements = {
        "plain": by_rank,
        "joined": by_rank.join(Video.author).where(Author.name.like("author %")),
        "nested": select(Video).where(Video.author.has(Author.id < 50)),
    }
    expected = 0
    for off in TOGGLES:
        # Costs are made up where there is no other plan, and would be worth compiling for (JIT).
        engine = fresh_engine(big, connect_args={"options": f"-c enable_{off}=off -c jit=off"})
        session = big.session(engine)
        for form, statement in statements.items():
            assert first_reserved(session, statement, f"{off} {form}") is not None
            expected += 1
            assert held(big) == expected
            assert len(take_reserved(session, statement, f"{off} {form}", limit=3)) == 3
            expected += 3
            assert held(big) == expected
