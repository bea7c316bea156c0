"""What must be true of an installed wheel; run by try_wheel.sh in an empty environment."""

import subprocess
import sys
import tempfile
from importlib import metadata, resources
from pathlib import Path

HEAVY = {"sqlalchemy", "redis", "psycopg", "pymysql", "django"}


def files_are_there() -> None:
    package = resources.files("reservable")
    assert package.joinpath("py.typed").is_file(), "py.typed is missing"
    scripts = [
        entry.name for entry in package.joinpath("backends/redis").iterdir() if entry.name.endswith(".lua")
    ]
    assert scripts, "the Lua scripts are missing"
    pages = package.joinpath("django/templates/reservable/admin")
    assert all(pages.joinpath(f"{page}.html").is_file() for page in ("reservations", "table", "release")), (
        "the pages of Django's admin are missing"
    )
    about = metadata.metadata("reservable")
    assert about["License-Expression"] == "MIT"
    assert any(str(path).endswith("LICENSE") for path in metadata.files("reservable") or ())
    assert not any(str(path).startswith("tests") for path in metadata.files("reservable") or ())


def import_is_light() -> None:
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", "import reservable, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not HEAVY & set(loaded), f"import reservable loads {HEAVY & set(loaded)}"


def every_public_name_is_there() -> None:
    import reservable

    assert reservable.__all__
    for name in reservable.__all__:
        assert getattr(reservable, name, None) is not None, f"reservable.{name} is not there"


def a_row_is_reserved(folder: Path) -> None:
    from sqlalchemy import create_engine, select
    from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

    from reservable import Reservable, first_reserved

    class Base(DeclarativeBase):
        pass

    class Video(Reservable, Base):
        __tablename__ = "videos"
        id: Mapped[int] = mapped_column(primary_key=True)

    engine = create_engine(f"sqlite:///{folder / 'videos.sqlite'}")
    Base.metadata.create_all(engine)
    with Session(engine) as session, Session(engine) as other:
        session.add_all([Video(id=1), Video(id=2)])
        session.commit()
        video, same = session.get(Video, 1), other.get(Video, 1)
        assert video is not None
        assert same is not None
        assert video.reserve("download", "+6 hours") is True
        assert same.reserve("download", "+6 hours") is False
        found = first_reserved(other, select(Video).order_by(Video.id), "download", "+6 hours")
        assert found is not None
        assert found.id == 2
        assert video.release("download") is True
        assert video.is_reserved("download") is False
    engine.dispose()


def main() -> None:
    files_are_there()
    import_is_light()
    every_public_name_is_there()
    with tempfile.TemporaryDirectory() as folder:
        a_row_is_reserved(Path(folder))
    beside = " ".join(
        f"{name} {metadata.version(name)}" for name in ("SQLAlchemy", "redis", "python-dateutil")
    )
    print(
        f"The wheel of reservable {metadata.version('reservable')} works in an empty environment ({beside})."
    )


if __name__ == "__main__":
    main()
