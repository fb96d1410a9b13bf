"""The journal of a query: what its driver program writes down, in which order, below a checkpoint's address.

    commit K-1 ─▶ plans/K ─▶ the job: segments/… ─▶ sink ─▶ waiting/K-… ─▶ commits/K ─▶ Spark's own commit

    plans/K        decided before batch K runs, and used again if it is run again
    segments/…     written by tasks; part of the state once a commit names them
    waiting/K-…    rows that row windows hold back after batch K
    sums/K         spans of aggregates that are open after batch K
    commits/K      the state after batch K: every 64th is whole, the others say what differs from the last whole one

If commit K exists, batch K is not run again; any batch other than the next one, or another query, is refused. Folders
are listed to find what may be deleted, never to find out what is live. What a batch makes superfluous is deleted one
batch later, when no task can read it any more; what failed attempts left behind by `sweep`.

Plans and commits are written only where there is none. If two driver programs run on one checkpoint, the first to
write one has it its way: the other follows its plan, and stops at its commit. An address that cannot tell (Arrow's file
systems have no such call) is read before and after the writing, so that of two programs at most the one that reads last
goes on; a short moment remains in which both might.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from windrow.errors import StateError
from windrow.run.spark.state import Commit, base_of, changed, difference, each_file
from windrow.store.storage import Storage

WHOLE_EVERY = 64
HIDDEN = "\0"
"""How the names of columns begin that are not the stream's."""

_OTHER_STATE = "use the state that belongs to this checkpoint"


class Journal:
    """Plans, commits and waiting rows below a checkpoint's address."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._base: Commit | None = None
        self._bases: dict[int, int] = {}
        self._again: set[int] = set()

    def plan(self, batch: int, attempt: int = 1) -> dict[str, Any] | None:
        """The plan that was written for a batch, or for another attempt at it."""
        name = _plan_name(batch, attempt)
        found = self.storage.find(name)
        with self._sound(name):
            return None if found is None else dict(json.loads(found))

    def write_plan(self, batch: int, plan: Mapping[str, Any], attempt: int = 1) -> dict[str, Any]:
        """Write the plan of a batch; the one that holds, which is another if somebody wrote one before."""
        if attempt > 1:
            self._again.add(batch)
        if self.storage.put_new(_plan_name(batch, attempt), json.dumps(plan).encode()):
            return dict(plan)
        held = self.plan(batch, attempt)
        return dict(plan) if held is None else held

    def commit(self, batch: int) -> Commit | None:
        """The commit of a batch."""
        found = self._text(batch)
        if found is None:
            return None
        with self._sound(_commit_name(batch)):
            base = base_of(found)
        if base is not None and (self._base is None or self._base.batch != base):
            whole = self._text(base)
            with self._sound(_commit_name(base)):
                if whole is None:
                    raise StateError(f"commit {batch} builds on commit {base}, which is not there", hint=_OTHER_STATE)
                self._base = Commit.from_json(whole)
        with self._sound(_commit_name(batch)):
            commit = Commit.from_json(found, None if base is None else self._base)
        self._base = commit if base is None else self._base
        self._bases[batch] = batch if base is None else base
        return commit

    def last(self, batch: int) -> Commit | None:
        """The commit of a batch that is due, or of the one before; None if that is the first and nothing is there."""
        commit = self.commit(batch) or self.commit(batch - 1)
        if commit is None and batch > 0:
            message = f"batch {batch} is due, but the state has neither it nor the one before"
            raise StateError(message, place=self.storage.place("commits"), hint=_OTHER_STATE)
        return commit

    def write_commit(self, commit: Commit) -> None:
        """Write the commit of a batch; refused if another run has written one."""
        base = self._base_for(commit)
        name, data = _commit_name(commit.batch), commit.to_json(base).encode()
        if not self.storage.put_new(name, data) and self.storage.find(name) != data:
            message = f"batch {commit.batch} has been committed by another driver program"
            raise StateError(message, place=self.storage.place(name), hint="run one query at a time on a checkpoint")
        self._base = commit if base is None else base
        self._bases[commit.batch] = self._base.batch

    def waiting(self, batch: int, stream: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The rows of a stream that were held back after a batch; of them `columns` (None: all) and hidden ones."""
        name = _waiting_name(batch, stream)
        found = self.storage.find(name)
        with self._sound(name):
            if found is None:
                return None
            table = pa.ipc.open_stream(found).read_all()
            if columns is None:
                return table
            lacking = [column for column in columns if column not in table.schema.names]
            if lacking:
                message = f"waiting rows of stream '{stream}' hold no column {lacking[0]}"
                raise StateError(message, hint="select it no more, or start with a new checkpoint")
            return table.select([*columns, *(each for each in table.schema.names if each.startswith(HIDDEN))])

    def write_waiting(self, batch: int, stream: str, rows: pa.Table) -> None:
        """Write the rows of a stream that are held back after a batch."""
        name = _waiting_name(batch, stream)
        with self.storage.writing(name) as file, pa.ipc.new_stream(file, rows.schema) as writer:
            writer.write_table(rows)

    def sums(self, batch: int) -> pa.Table | None:
        """The spans that were open after a batch."""
        name = _sums_name(batch)
        found = self.storage.find(name)
        with self._sound(name):
            return None if found is None else pa.ipc.open_stream(found).read_all()

    def write_sums(self, batch: int, spans: pa.Table) -> None:
        """Write the spans that are open after a batch."""
        with self.storage.writing(_sums_name(batch)) as file, pa.ipc.new_stream(file, spans.schema) as writer:
            writer.write_table(spans)

    def forget(self, batch: int, streams: Iterable[str], objects: Iterable[str]) -> None:
        """Delete what belongs to a batch that cannot be run again, and objects nobody names any more.

        A whole commit stays as long as one of the two batches that follow builds on it.
        """
        named = {self._bases.get(later) for later in (batch + 1, batch + 2)}
        candidates = {batch, self._bases.get(batch, batch)}
        commits = [_commit_name(each) for each in sorted(candidates - named)]
        self._bases = {later: base for later, base in self._bases.items() if later > batch}
        waiting = (_waiting_name(batch, stream) for stream in streams)
        attempts = (1, 2) if batch in self._again else (1,)
        self._again.discard(batch)
        plans = (_plan_name(batch, attempt) for attempt in attempts)
        self.storage.delete_all((*plans, _sums_name(batch), *commits, *waiting, *objects))

    def sweep(self, commit: Commit) -> tuple[str, ...]:
        """Delete what the last commit does not name and what belongs to batches at least two before it; their names."""
        before = commit.batch - 1
        bases = set()
        for batch in (commit.batch, commit.batch - 1):
            text = self._text(batch)
            if text is not None:
                bases.add(base_of(text))
        named = {*commit.names(), *commit.dying, *(_commit_name(base) for base in bases if base is not None)}
        folders = ("segments", "plans", "waiting", "sums", "commits", "rounds")
        return tuple(name for folder in folders for name in sweep(self.storage, folder, named, before))

    def _text(self, batch: int) -> str | None:
        found = self.storage.find(_commit_name(batch)) if batch >= 0 else None
        return None if found is None else found.decode(errors="replace")

    def _base_for(self, commit: Commit) -> Commit | None:
        """The whole commit that a commit is written as a difference from; None if it should be whole."""
        base = self._base
        if base is None or not base.batch < commit.batch < base.batch + WHOLE_EVERY:
            return None
        removed, added = difference(base.live, commit.live)
        moved = len(removed) + len(list(each_file(added)))
        if 2 * moved > len(list(each_file(commit.live))):
            return None
        return base if changed(base.live, removed, added) == commit.live else None

    @contextmanager
    def _sound(self, name: str) -> Iterator[None]:
        """Turns what reading a file that is not as it was written may raise into our error, with its place."""
        try:
            yield
        except StateError as error:
            place = error.place or self.storage.place(name)
            raise StateError(error.message, place=place, hint=error.hint) from error
        except (ValueError, TypeError, OSError, StopIteration, pa.ArrowException) as error:
            message = f"'{name}' is damaged: {str(error).partition(chr(10))[0]}"
            hint = "restore it from a copy, or start with a new checkpoint"
            raise StateError(message, place=self.storage.place(name), hint=hint) from error


def is_done(last: Commit, batch: int, query: str) -> bool:
    """Whether the state has a batch that is due; any but the last and the next is refused, and so is another query."""
    if last.query and query and last.query != query:
        message = f"the state belongs to the query {last.query}, this is {query}"
        raise StateError(message, hint=_OTHER_STATE)
    if batch not in (last.batch, last.batch + 1):
        raise StateError(f"batch {batch} is due after batch {last.batch}", hint=_OTHER_STATE)
    return batch == last.batch


def segment_name(batch: int, place: int, stream: str, run: str, attempt: str) -> str:
    """The name of a segment: no other attempt of a task has it.

    >>> segment_name(12, 3, "a b", "1f", "77")
    'segments/000000012-3-a%20b-1f-77'
    """
    return f"segments/{batch:09d}-{place}-{quote(stream, safe='')}-{run}-{attempt}"


def sweep(storage: Storage, folder: str, named: Iterable[str], before: int) -> tuple[str, ...]:
    """Delete the objects of a folder that belong to batches below `before` and are not named; the deleted ones.

    The batch is the number that an object's name begins with; others stay.
    """
    kept = frozenset(named)
    left = [name for name in storage.list(folder) if name not in kept and _batch_of(name) < before]
    storage.delete_all(left)
    return tuple(left)


def _batch_of(name: str) -> float:
    digits = name.rpartition("/")[2].partition("-")[0].partition(".")[0]
    return int(digits) if digits.isdecimal() else float("inf")


def _plan_name(batch: int, attempt: int) -> str:
    return f"plans/{batch}.json" if attempt == 1 else f"plans/{batch}-{attempt}.json"


def _commit_name(batch: int) -> str:
    return f"commits/{batch}.json"


def _sums_name(batch: int) -> str:
    return f"sums/{batch}"


def _waiting_name(batch: int, stream: str) -> str:
    return f"waiting/{batch}-{quote(stream, safe='')}"
