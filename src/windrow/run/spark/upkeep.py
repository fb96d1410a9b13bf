"""What happens to live segments from batch to batch, as pure functions of commits.

    plan K      merges_of(live after K-1) ──▶ which segments tasks merge in K, of all slices, whoever got new rows
    commit K    live after K-1 + what tasks wrote ─ what merging replaced ─ what expired ──▶ live after K, and dying

A merged segment spans at most an eighth of the window: on disk what is kept past its time counts, and so do the
members of a group until their successor is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import compress
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from windrow.query.spec import QuerySpec
from windrow.run.spark.state import Commit, Live
from windrow.store.files import SegmentFile
from windrow.store.tiers import Extent, groups, limits_of

SPAN_SHARE = 8
LIMITED_SHARE = 16
"""Under a memory limit segments are rewritten, so they are shorter."""

Merges: TypeAlias = dict[int, dict[str, list[list[str]]]]
"""For each slice and stream the groups of segments to merge, by name; as it is, it can be a part of a plan."""


class Kept(NamedTuple):
    """A segment that a task wrote, the names of those it takes the place of, and what else is told of it."""

    place: int
    stream: str
    file: SegmentFile
    replaces: tuple[str, ...] = ()
    facts: Mapping[str, Any] = MappingProxyType({})


def merges_of(live: Live, spec: QuerySpec, share: int = SPAN_SHARE) -> Merges:
    """The merges to make in the next batch; none spans more than a `share`-th of the window."""
    lateness_us = max(stream.lateness_us for stream in spec.streams)
    limits = {stream.name: limits_of(stream.window, lateness_us, share) for stream in spec.streams}
    merges: Merges = {}
    for place, streams in live.items():
        for name, files in streams.items():
            found = groups([_extent(file) for file in files], limits[name])
            if found:
                merges.setdefault(place, {})[name] = [[files[member].name for member in group] for group in found]
    return merges


def after_batch(
    last: Commit,
    kept: Iterable[Kept],
    expiry: Mapping[str, tuple[int, int]] | Callable[[str], tuple[int, int]],
    gone: frozenset[str] = frozenset(),
) -> tuple[Live, tuple[str, ...]]:
    """The live segments after a batch, and the objects nobody needs behind it.

    `expiry` gives for a stream from when on its rows are needed, by event time and by row number (`Entry.expiry`);
    segments that are `gone` go all the same.
    """
    replaced: set[str] = set(gone)
    everything = {place: {name: list(files) for name, files in streams.items()} for place, streams in last.live.items()}
    for place, name, file, replaces, _ in kept:
        everything.setdefault(place, {}).setdefault(name, []).append(file)
        replaced.update(replaces)
    live: dict[int, dict[str, tuple[SegmentFile, ...]]] = {}
    dying: list[str] = []
    for place, streams in everything.items():
        for name, files in streams.items():
            ends = expiry[name] if isinstance(expiry, Mapping) else expiry(name)
            needed = [file.name not in replaced and is_needed(file, name, *ends) for file in files]
            if any(needed):
                live.setdefault(place, {})[name] = tuple(compress(files, needed))
            dying.extend(each for file, stays in zip(files, needed, strict=True) if not stays for each in file.names)
    return live, tuple(dying)


def is_needed(file: SegmentFile, stream: str, cutoff_us: int, first_clock: int) -> bool:
    """Whether a segment has rows from `cutoff_us` on and, in a row window, numbered from `first_clock` on."""
    if file.rows == 0 or file.last_us < cutoff_us:
        return False
    return first_clock <= 0 or file.clocks[stream][1] >= first_clock


def _extent(file: SegmentFile) -> Extent:
    return Extent(file.first_us, file.last_us, file.rows, file.bytes, file.level)
