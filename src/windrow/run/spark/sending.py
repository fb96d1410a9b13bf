"""What the entrance and the hops send: new rows to the slices that keep them, partial results to those they probe next.

    new rows ─┬─ store ──▶ the slice of each row
              └─ probe ──▶ portion by portion, all slices that their first step reaches
    partial results ─────▶ all slices that their next step reaches

A portion that looks at ranges of lag reaches only the slices that hold such rows: where a harvest has chosen nothing,
nothing is sent.

What is not sent is not searched, though it lies within reach: that would make conditions look less selective than they
are. So the clerk notes about how many rows were passed over, by what is known of files without opening them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windrow.plan.bins import Lags
from windrow.plan.plan import path_name
from windrow.plan.shedding import Shedding
from windrow.probe.step import StepProbe
from windrow.run.batch import portion_of, shares
from windrow.run.counting import Clerk, StepCount
from windrow.run.partial import Partial, View, first_partial
from windrow.run.program import Program
from windrow.run.reach import Reach, driver_clock, time_reach
from windrow.run.spark import messages
from windrow.run.spark.messages import PROBE, STORE, Message
from windrow.run.spark.placing import homes, visits
from windrow.run.spark.state import Live, each_file
from windrow.store import codec
from windrow.store.operand import Array
from windrow.store.segment import Segment

LARGEST_MESSAGE_ROWS = 1 << 18


class Heading(NamedTuple):
    """What some partial results are: of which driver, of its portion (or of the piece) with which number, on which
    path, and which lags bound the step that they take next (None: none).
    """

    driver: str
    number: int
    path: str
    lags: Lags | None


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends rows of one batch; `live` is what was stored before it, the clerk notes who sets out."""

    program: Program
    shedding: Shedding
    live: Live
    clerk: Clerk

    def placed(self, name: str, segment: Segment) -> Iterator[Message]:
        """New rows as messages: to keep, and to probe."""
        yield from stored(self.program, name, segment)
        stream = self.program.spec.stream(name)
        first = first_partial({name: View(stream, (), segment)}, name, segment)
        for number, part in shares(self.program, name, first, self.shedding):
            portion = portion_of(self.program, name, number, self.shedding)
            page = self.clerk.page(path_name(name, portion.alternative), portion.sampled)
            page.set_out(part)
            page.exposes(part, {each.name: each.window.rows is not None for each in self.program.spec.streams})
            for step, target in enumerate(page.targets if page.bins and page.learns else ()):
                page.behind[step] += self._newer(name, target, part)
            yield from self.sent(name, number, 0, part)

    def sent(self, driver: str, number: int, step_number: int, partial: Partial) -> Iterator[Message]:
        """Partial results of a driver's portion as messages to the slices that a step of their path reaches."""
        portion = portion_of(self.program, driver, number, self.shedding)
        path = path_name(driver, portion.alternative)
        page = self.clerk.page(path, portion.sampled)
        note = page.steps[step_number] if page.bins and page.learns else None
        drawn = self.shedding.throttle if portion.sampled and step_number == 0 else 1.0
        yield from self.along(
            Heading(driver, number, path, portion.lags[step_number]), step_number, partial, note, drawn
        )

    def along(
        self, heading: Heading, step_number: int, partial: Partial, note: StepCount | None = None, drawn: float = 1.0
    ) -> Iterator[Message]:
        """Partial results as messages to the slices that a step of a path reaches; what is passed over is noted, as far
        as it would have been drawn.
        """
        step, carried = self.program.steps[heading.path][step_number], self.program.carried[heading.path][step_number]
        for start in range(0, len(partial), LARGEST_MESSAGE_ROWS):
            chunk = partial.pick(np.arange(start, min(start + LARGEST_MESSAGE_ROWS, len(partial))))
            reaches = self._reaches(step, chunk, heading.lags)
            visited = self._visited(step, chunk, reaches)
            if note is not None and self.program.plan.slices.of(step.target).kind != "time":
                note.searched += round(drawn * self._passed_over(step, reaches, visited))
            everywhere = messages.partial_bytes(chunk, carried) if visited.all(axis=0).any() else b""
            for place in range(visited.shape[1]):
                rows = np.flatnonzero(visited[:, place])
                if len(rows):
                    alone = len(rows) == len(chunk)
                    payload = everywhere if alone else messages.partial_bytes(chunk.pick(rows), carried)
                    yield Message(place, PROBE, heading.driver, len(rows), payload, heading.number)

    def _reaches(self, step: StepProbe, partial: Partial, lags: Lags | None) -> list[Reach]:
        """Where in event time partial results look, one reach for each range of lag."""
        stream = self.program.spec.stream(step.target)
        whole = time_reach(step, partial, stream)
        if lags is None or (lags and stream.window.rows is not None):
            return [whole]
        return [whole.within(partial.turn_us, low, high) for low, high in lags]

    def _visited(self, step: StepProbe, partial: Partial, reaches: Sequence[Reach]) -> Array:
        """Which slices each partial result visits: rows × slices."""
        slicing = self.program.plan.slices.of(step.target)
        visited = np.zeros((len(partial), slicing.count), np.bool_)
        for reach in reaches:
            visited |= visits(self.program, slicing, step, partial, reach)
        return visited

    def _passed_over(self, step: StepProbe, reaches: Sequence[Reach], visited: Array) -> float:
        """About how many stored rows lie within reach on slices that are not visited."""
        found = 0.0
        for place, name, file in each_file(self.live):
            if name == step.target:
                for reach in reaches:
                    low, high = np.maximum(reach.low, file.first_us), np.minimum(reach.high, file.last_us)
                    share = np.maximum(high - low + 1, 0) / (file.last_us - file.first_us + 1)
                    found += file.rows * float(share[~visited[:, place]].sum())
        return found

    def _newer(self, driver: str, target: str, first: Partial) -> int:
        """About how many stored rows of a stream are newer than each of a driver's new rows, all together."""
        in_rows = self.program.spec.stream(target).window.rows is not None
        own = driver_clock(first, driver, target) if in_rows else first.turn_us
        found = 0.0
        for _, name, file in each_file(self.live):
            if name == target:
                begin, end = file.clocks[target] if in_rows else (file.first_us, file.last_us)
                if end > int(own.min()):
                    share = np.clip((end - own) / max(1, end - begin + 1), 0.0, 1.0)
                    found += file.rows * float(share.sum())
        return round(found)


def stored(program: Program, name: str, segment: Segment) -> Iterator[Message]:
    """New rows as messages to the slices that keep them."""
    batch = codec.to_batch(segment)
    for home, rows in by_home(program, name, segment):
        part = batch if len(rows) == len(segment) else batch.take(pa.array(rows))
        yield Message(home, STORE, name, len(part), codec.to_bytes(part))


def by_home(program: Program, name: str, segment: Segment) -> Iterator[tuple[int, Array]]:
    """The rows of a new segment, slice by slice."""
    found = homes(program, program.plan.slices.of(name), segment)
    for home in np.unique(found):
        yield int(home), np.flatnonzero(found == home)
