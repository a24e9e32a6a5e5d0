"""Processes that take turns at every call of storage and of a ledger, in an order from a seed. Calls fail or come late, and
processes die.

    schedule = Schedule(seed, Faults.drawn(...))
    process = schedule.process()
    process.run(work)                       # an actor, in a separate thread; only one of all runs at a time
    store = SimulatedStore(schedule)        # each call is a turn
    schedule.go()                           # until all have ended
    schedule.settle()                       # late calls are carried out

A call is carried out as a whole, in the turn of its caller. The same seed repeats the same schedule.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from delta_py.storage.store import ObjectInfo
from tests.support.stores.memory_store import MemoryStore

T = TypeVar("T")

_PAGE = 2  # names that a listing returns at a time
_CHANGES = frozenset({"put", "put_if_absent", "link", "delete", "ledger ratify", "ledger acknowledge"})  # may come late


class ProcessDied(BaseException):
    """Raised in the actors of a process that has died: nothing that they still do is visible."""


@dataclass(frozen=True)
class Faults:
    """How likely each fault of a call is: it fails; it is carried out and reports a failure; it reports a failure and is carried
    out later; the process dies before it, or after it."""

    failed: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    died: float = 0.0

    @property
    def of_a_call(self) -> tuple[tuple[str, float], ...]:
        """before, behind: the process dies before the call, or after it."""
        return (
            ("failed", self.failed), ("lost", self.lost), ("late", self.late), ("before", self.died), ("behind", self.died)
        )

    @classmethod
    def drawn(cls, draw: random.Random) -> Faults:
        """None in a third of the schedules, otherwise some faults of one kind or two."""
        if draw.random() < 1 / 3:
            return cls()
        most = draw.choice((0.02, 0.05, 0.15))
        return cls(*(draw.choice((0.0, most)) for _ in range(3)), died=draw.choice((0.0, 0.01, 0.04)))


@dataclass(eq=False)
class Process:
    schedule: Schedule
    is_dead: bool = False
    memory: dict[Any, Any] = field(default_factory=dict)
    """What its actors share and no other process sees."""

    def run(self, work: Callable[[], None]) -> None:
        self.schedule.add(_Actor(self, work))


class _Actor:
    def __init__(self, process: Process, work: Callable[[], None]) -> None:
        self.process, self.work = process, work
        self.may_go = threading.Lock()  # released by the actor that gives it the turn
        self.may_go.acquire()
        self.waits_for: Turns | None = None
        self.error: BaseException | None = None

    @property
    def is_ready(self) -> bool:
        return self.waits_for is None or self.waits_for.owner is None or self.process.is_dead


class Schedule:
    def __init__(self, seed: int, faults: Faults | None = None) -> None:
        self.draw = random.Random(seed)
        self.faults = faults if faults is not None else Faults.drawn(self.draw)
        self.has_died = self.has_stuck = False
        self.calls = 0
        self._actors: list[_Actor] = []
        self._late: list[Callable[[], Any]] = []
        self._ended = threading.Event()
        self.now: _Actor | None = None
        """Whose turn it is; None outside of all turns, where calls are carried out as they are."""

    def process(self) -> Process:
        return Process(self)

    def add(self, actor: _Actor) -> None:
        self._actors.append(actor)

    # ------------------------------------------------------------ turns

    def go(self, pool: ThreadPoolExecutor, threads: int) -> None:
        """Let all actors run to their ends. threads: of the pool, at least one for each. Raises what an actor raised."""
        actors = tuple(self._actors)
        assert len(actors) <= threads, "an actor that gets no thread would never end"
        futures = [pool.submit(self._live, actor) for actor in actors]
        if actors:
            self._give(self.draw.choice(actors))
            self._ended.wait()
        for future in futures:
            future.result()
        self.now = None
        for actor in actors:
            if actor.error is not None:
                raise actor.error
        assert not self.has_stuck, "all actors waited for each other"

    def _live(self, actor: _Actor) -> None:
        actor.may_go.acquire()
        try:
            self._check(actor)
            actor.work()
        except ProcessDied:
            pass
        except BaseException as error:
            actor.error = error
        self._actors.remove(actor)
        if self._actors:
            self._give(self._next())
        else:
            self._ended.set()

    def _next(self) -> _Actor:
        ready = [actor for actor in self._actors if actor.is_ready]
        if not ready:
            self.has_stuck = True
            for actor in self._actors:
                actor.process.is_dead = True  # so that all come to their ends
            ready = self._actors
        return self.draw.choice(ready)

    def _give(self, actor: _Actor) -> None:
        self.now = actor
        actor.may_go.release()

    def turn(self) -> None:
        """Others may run first."""
        me = self.now
        if me is None:
            return
        chosen = self._next()
        if chosen is not me:
            self._give(chosen)
            me.may_go.acquire()
        self._check(me)

    def _check(self, actor: _Actor) -> None:
        if actor.process.is_dead:
            raise ProcessDied

    # ------------------------------------------------------------ calls

    def call(self, name: str, action: Callable[[], T]) -> T:
        """Raises OSError if the call fails."""
        if self.now is None:
            return action()
        self.turn()
        self.calls += 1
        if self._late and self.draw.random() < 0.2:
            self._carry_out(self._late.pop(self.draw.randrange(len(self._late))))
        chance = self.draw.random()
        for fault, probability in self.faults.of_a_call:
            chance -= probability
            if chance < 0:
                return self._fail(fault, name, action)
        return action()

    def _fail(self, fault: str, name: str, action: Callable[[], T]) -> T:
        if fault == "late" and name in _CHANGES:
            self._late.append(action)
        elif fault in ("lost", "behind"):
            action()
        if fault in ("before", "behind"):
            assert self.now is not None
            self.now.process.is_dead = self.has_died = True
            raise ProcessDied
        raise OSError(f"{fault} in {name}")

    def settle(self) -> None:
        """Carry out late calls."""
        while self._late:
            self._carry_out(self._late.pop(0))

    def _carry_out(self, action: Callable[[], Any]) -> None:
        with contextlib.suppress(Exception):  # nobody gets the answer
            action()


class Turns:
    """threading.Lock for actors: an actor that waits lets others run."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule, self.owner = schedule, None

    owner: _Actor | None

    def __enter__(self) -> None:
        me = self._schedule.now
        assert me is not None
        while self.owner is not None:
            me.waits_for = self
            self._schedule.turn()
        self.owner, me.waits_for = me, None

    def __exit__(self, *_: object) -> None:
        self.owner = None


class SimulatedStore(MemoryStore):
    """Each call is a turn, and each page of a listing. links: whether a commit can be published by a link, as on disks."""

    def __init__(self, schedule: Schedule, objects: dict[str, tuple[bytes, int]], *, links: bool) -> None:
        super().__init__(is_remote=False, objects=objects)
        self._schedule, self._links = schedule, links

    def _run(self, name: str, path: str, action: Callable[[], T]) -> T:
        return self._schedule.call(name, action)

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        first = start
        while True:
            page = list(super().list_from(directory, first))[:_PAGE]
            yield from page
            if len(page) < _PAGE:
                return
            first = page[-1].path.rpartition("/")[2] + "\0"

    def link(self, path: str, new_path: str) -> bool:
        if not self._links:
            return False

        def link() -> bool:
            data = self._data(path)
            if self._key(new_path) in self.objects:
                raise FileExistsError(17, "Object exists", new_path)
            self.objects[self._key(new_path)] = (data, self.now_ms)
            return True

        return self._run("link", path, link)
