"""manage.py reservable list|show|release|prune|check: look at reservations, end one, clear the table, ask the stores."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reservable.django.inspection import EVICTION_ADVICE, Report, eviction_told, reports
from reservable.django.named import rows_named, text_of
from reservable.django.overview import Entry, model_label, overview, stores
from reservable.django.releasing import Fate, Outcome, release_shown
from reservable.errors import ReservableError


class Command(BaseCommand):
    """Works on every store of the project: the one of names without a model, and those of single models.

    Ends with 1 when something is wrong, nobody holds what was named, or a store cannot be asked; `show` and `release`
    that find the name in another store only tell of the one that cannot.
    """

    help = "Looks at reservations, releases one whoever holds it, removes what is over, asks the stores how they are."

    def add_arguments(self, parser: Any) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="what is reserved now: name, owner, until when")
        listing.add_argument(
            "pattern", type=text, nargs="?", default="*", help="a shell pattern of names: 'shop.video:*'"
        )
        show = verbs.add_parser("show", help="all that is known of one reservation")
        show.add_argument("name", type=text, help="as list shows it: shop.video:249:download")
        release = verbs.add_parser("release", help="take a name from whoever holds it")
        release.add_argument("name", type=text, help="as list shows it: shop.video:249:download")
        release.add_argument("--fence", type=int, help="only the grant with this fence, as show tells it")
        verbs.add_parser("prune", help="remove rows of reservations that are over")
        verbs.add_parser(
            "check", help="where reservations live, whether it can be reached, how many there are"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        verbs: dict[str, Callable[[Any], None]] = {
            "list": self._list,
            "show": self._show,
            "release": self._release,
            "prune": self._prune,
            "check": self._check,
        }
        try:
            verbs[options["verb"]](options)
        except ReservableError as error:
            raise CommandError(str(error)) from error

    def _list(self, options: Any) -> None:
        found = overview(options["pattern"])
        for entry in found.entries:
            until = entry.holder.until.isoformat(timespec="seconds")
            self.stdout.write(f"{printable(entry.name)}\t{printable(entry.owner)}\t{until}")
        if found.failures:
            raise CommandError("; ".join(found.failures))

    def _show(self, options: Any) -> None:
        for entry in self._holders(options["name"]):
            self._tell(_facts(entry))

    def _release(self, options: Any) -> None:
        name, fence = options["name"], options["fence"]
        held = self._holders(name)
        chosen = [entry for entry in held if fence in (None, entry.holder.fence)]
        if not chosen:
            raise CommandError(
                f"{name} is held by another grant, with the fence {held[0].holder.fence}: it was left alone"
            )
        done = release_shown(entry.shown_as for entry in chosen)
        for one in done:
            if one.fate is Fate.RELEASED and one.entry is not None:
                self.stdout.write(f"released {name}, held by {printable(one.entry.owner)}")
        failed = [one for one in done if one.fate is not Fate.RELEASED]
        if failed:
            raise CommandError("; ".join(map(_told, failed)))

    def _prune(self, _: Any) -> None:
        removed, failures = 0, []
        for store in stores():
            try:
                removed += store.blocking.prune()
            except ReservableError as error:
                failures.append(str(error))
        self.stdout.write(f"removed {removed}")
        if failures:
            raise CommandError("; ".join(failures))

    def _check(self, _: Any) -> None:
        found = reports()
        for report in found:
            self._tell(_described(report))
        wrong = [problem for report in found for problem in _problems(report)]
        if wrong:
            raise CommandError("\n".join(wrong))

    def _holders(self, name: str) -> list[Entry]:
        """Who holds the name, in each store that has it; tells of stores that cannot be asked.

        `CommandError` where none is found to have it.
        """
        found: dict[str, Entry] = {}
        failures: list[str] = []
        for store in stores():
            try:
                holder = store.blocking.holder(name)
            except ReservableError as error:
                failures.append(str(error))
                continue
            if holder is not None:
                entry = Entry(holder, store)
                found.setdefault(entry.shown_as, entry)
        if not found:
            raise CommandError("; ".join(failures) or f"nobody holds {name}")
        for failure in failures:
            self.stderr.write(failure)
        return [*found.values()]

    def _tell(self, facts: dict[str, Any]) -> None:
        for label, fact in facts.items():
            self.stdout.write(f"{label:<11}{printable(str(fact))}")


def _facts(entry: Entry) -> dict[str, Any]:
    model = entry.parts[0]
    facts: dict[str, Any] = {"name": entry.name}
    if model:
        row = rows_named([entry.name]).get(entry.name)
        facts |= {
            "model": model_label(model),
            "object": f"{entry.pk} ({'no such row' if row is None else text_of(row) or entry.pk})",
        }
    return facts | {
        "key": entry.key,
        "owner": entry.owner,
        "since": entry.holder.since.isoformat(timespec="seconds"),
        "until": entry.holder.until.isoformat(timespec="seconds"),
        "time left": entry.time_left,
        "fence": entry.holder.fence,
        "store": repr(entry.store.given),
    }


def _described(report: Report) -> dict[str, Any]:
    facts = {
        "store": report.store,
        "serves": ", ".join(report.serves),
        "server": report.server,
        "reserved": report.reserved,
    }
    return {label: fact for label, fact in facts.items() if fact is not None}


def _problems(report: Report) -> list[str]:
    if report.failure is not None:
        return [report.failure]
    if report.eviction is not None:
        return [f"{eviction_told(report.eviction)} {EVICTION_ADVICE}"]
    return []


def _told(one: Outcome) -> str:
    return f"{one.name}: {one.why or one.fate.value}"


def text(argument: str) -> str:
    """An argument as it was given. Raises `ArgumentTypeError` for what is not text: bytes that are not UTF-8."""
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        raise ArgumentTypeError(f"this is not UTF-8: {printable(argument)}") from error
    return argument


def printable(text: str) -> str:
    """Text of others for a terminal: control characters are escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
