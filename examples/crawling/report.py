"""What was promised, and whether it was kept: judged by what the site has noted and what the table says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from examples.downloading.report import Promise, Worker, ended

from .model import Page
from .site import BROKEN, LATER, SLOW, Visit

LEASE = Page.__queue__.lifetime.total_seconds()
ATTEMPTS = 3


@dataclass(frozen=True)
class Crawled:
    """One page at the end: what the table says, and what the site has seen."""

    path: str
    status: str
    attempts: int
    sha256: str | None = None
    errors: Sequence[str] = ()
    """The messages, oldest first."""
    visits: Sequence[Visit] = ()


@dataclass(frozen=True)
class Run:
    """All that is known at the end of a run."""

    pages: Sequence[Crawled]
    site: Mapping[str, str]
    """SHA-256 of each page that there is, by its path."""
    workers: Sequence[Worker]
    victim: int | None
    """Process id of the worker that was killed."""
    resumed: float
    """When the paused page was resumed, by `time.monotonic()`."""
    seconds: float

    def of(self, *paths: str) -> list[Crawled]:
        return [page for page in self.pages if page.path in paths]

    @property
    def good(self) -> list[Crawled]:
        return [page for page in self.pages if page.path not in {BROKEN, SLOW, LATER}]


def promises(run: Run) -> list[Promise]:
    """Every promise of this example, in the order of the table."""
    whole = [page for page in run.pages if page.path != BROKEN]
    return [
        Promise("every page of the site was queued exactly once", _queued(run)),
        _each(f"each of the {len(run.good)} good pages was fetched exactly once", run.good, _once),
        _each("what the table has of a page is what the site has sent", whole, _same(run)),
        _each(f"the broken page has failed after {ATTEMPTS} attempts", run.of(BROKEN), _failed),
        _each("between them it was left alone, longer each time", run.of(BROKEN), _left_alone),
        _each("the killed worker's page was done by another one", run.of(SLOW), _taken_over(run)),
        _each("... and not before the lease was over", run.of(SLOW), _waited),
        _each("the paused page was fetched after it was resumed", run.of(LATER), _resumed(run)),
        Promise("the other workers ended when they were told to", ended(run.workers, run.victim)),
    ]


def _each(text: str, pages: Sequence[Crawled], wrong: Callable[[Crawled], str | None]) -> Promise:
    found = [f"{page.path} {trouble}" for page in pages if (trouble := wrong(page))]
    return Promise(text, found if pages else ["there is no such page"])


def _queued(run: Run) -> list[str]:
    there = [page.path for page in run.pages]
    twice = [f"{path} is there {there.count(path)} times" for path in {*there} if there.count(path) > 1]
    return twice + [f"{path} is in one of them only" for path in {*there} ^ {*run.site}]


def _once(page: Crawled) -> str | None:
    if (page.status, page.attempts, len(page.visits)) != ("succeeded", 1, 1):
        return f"has {page.status} after {page.attempts} attempts and {len(page.visits)} visits"
    return None


def _same(run: Run) -> Callable[[Crawled], str | None]:
    return lambda page: None if page.sha256 == run.site.get(page.path) else f"has {page.sha256}"


def _failed(page: Crawled) -> str | None:
    if (page.status, page.attempts, len(page.visits)) != ("failed", ATTEMPTS, ATTEMPTS):
        return f"has {page.status} after {page.attempts} attempts and {len(page.visits)} visits"
    told = ["500" in error for error in page.errors]
    return None if told == [True] * ATTEMPTS else f"has these errors: {list(page.errors)}"


def _left_alone(page: Crawled) -> str | None:
    backoff = Page.__queue__.backoff
    times = [visit.at for visit in page.visits]
    for failures, (before, after) in enumerate(pairwise(times), 1):
        least = backoff.delay(failures).total_seconds()
        if after - before < least:
            return f"was tried again after {after - before:.3f} seconds, not {least}"
    return None


def _taken_over(run: Run) -> Callable[[Crawled], str | None]:
    def wrong(page: Crawled) -> str | None:
        if (page.status, page.attempts, len(page.visits)) != ("succeeded", 2, 2):
            return f"has {page.status} after {page.attempts} attempts and {len(page.visits)} visits"
        first, second = page.visits
        if first.agent != f"crawler/{run.victim}" or second.agent == first.agent:
            return f"was visited by {first.agent} and {second.agent}; killed was {run.victim}"
        return None

    return wrong


def _waited(page: Crawled) -> str | None:
    # The lease began before the visit, by no more than the time from a claim to its request.
    waited = page.visits[-1].at - page.visits[0].at
    return None if waited >= LEASE / 2 else f"was taken over after {waited:.3f} seconds"


def _resumed(run: Run) -> Callable[[Crawled], str | None]:
    def wrong(page: Crawled) -> str | None:
        early = sum(visit.at < run.resumed for visit in page.visits)
        return f"was visited {early} times before" if early else _once(page)

    return wrong
