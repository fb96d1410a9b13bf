"""All knobs at once: harvest and shredding on drawn paths, drivers' policies, changing methods, repairs, memory limits.

Prompt and repaired rows together are those of DuckDB. Under a memory limit they are some of them, each once, and what
is lacking was let go and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow
from tests.oracle.arrivals import BATCH_SIZES, POLICIES, batches, shuffled
from tests.oracle.duck import difference, rows_of
from tests.oracle.queries import Case, cases
from tests.run.test_repair import Chance, bound, expected_of
from windrow.control.controller import ControlSettings
from windrow.plan.shedding import Portion, Shedding
from windrow.run.backlog import RepairSettings
from windrow.run.local import LocalJoin

pytestmark = pytest.mark.usefixtures("interpreted")

LIMITS = (None, None, "1500B", "6KB")


class Knobs(Chance):
    """As chance has it, and each portion takes a path of its own."""

    def shedding(self, join: LocalJoin) -> Shedding:
        return replace(super().shedding(join), portions=tuple(
            (path.driver, tuple(self._portion(join, path.driver, share) for share in self._shares()))
            for path in join.plan.firsts
        ))  # fmt: skip

    def _shares(self) -> list[float]:
        shares: list[float] = self.draw.dirichlet([1.0] * int(self.draw.integers(1, 5))).tolist()
        return shares

    def _portion(self, join: LocalJoin, driver: str, share: float) -> Portion:
        paths = [path for path in join.plan.paths if path.driver == driver]
        path = paths[int(self.draw.integers(len(paths)))]
        if self.draw.random() < 0.3:
            return Portion(share, (None,) * len(path.targets), sampled=True, alternative=path.alternative)
        lags = tuple(self._lags(join, target) for target in path.targets)
        return Portion(share, lags, alternative=path.alternative)


def run(query: Any, tables: Mapping[str, pa.Table], knobs: Knobs, seed: int, size: int | None, **options: Any) -> Any:
    """The rows that came at once and later, and the join."""
    found: tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]] = (Counter(), Counter())
    control = ControlSettings(interval_s=2.0, sample=0.2, bins=4, behind=True)
    now_s = 0.0
    with windrow.local(query, control=control, shed="repair", charge=knobs.charge, **options) as join:

        def take(step: Any) -> None:
            assert join.controller is not None
            join.controller._batches.clear()  # what is drawn holds, whatever the controller would say
            join.controller.shedding = knobs.shedding(join)
            table = step()
            late = table.column("repaired")
            bare = table.drop_columns(["repaired"])
            found[0].update(rows_of(bare.filter(pa.compute.invert(late))))
            found[1].update(rows_of(bare.filter(late)))

        for batch in batches(tables, shuffled(tables, seed), size):
            for name, table in batch.items():
                join.push(name, table)
            now_s += knobs.slack_s()
            take(lambda: join.step(now_s=now_s))  # noqa: B023 - called at once
        take(join.finish)
    return *found, join


@pytest.mark.parametrize(("streams", "row_windows"), [(2, False), (2, True), (3, False), (3, True)])
@pytest.mark.parametrize(
    ("sizes", "examples"), [((7, 50, None), 7), pytest.param(BATCH_SIZES, 120, marks=pytest.mark.long)]
)
def test_all_that_was_not_let_go_comes_once(
    streams: int, row_windows: bool, sizes: tuple[int | None, ...], examples: int
) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(
        cases(streams=streams, row_windows=row_windows),
        st.sampled_from(sizes),
        st.sampled_from(POLICIES),
        st.sampled_from(LIMITS),
        st.builds(RepairSettings, st.sampled_from(("oldest", "productive")), st.booleans()),
        st.booleans(),
        st.integers(0, 99),
    )
    def check(
        case: Case, size: int | None, policy: str, memory: str | None, repair: RepairSettings, adaptive: bool, seed: int
    ) -> None:
        query = bound(case.question.text, case.tables)
        options = {"policy": policy, "memory": memory, "repair": repair, "adaptive": adaptive}
        prompt, repaired, join = run(query, case.tables, Knobs(seed, 3.0), seed, size, **options)
        exact, report = expected_of(case, query), join.report
        if not report.unjoined.let_go:
            assert difference(prompt + repaired, exact) == "", case.question.text
        assert not (prompt + repaired) - exact, case.question.text
        assert report.repair is not None
        assert (report.repair.open_pieces, report.repair.forgotten_pieces) == (0, 0)
        assert report.repair.results == repaired.total()
        seen.update({"prompt": bool(prompt), "repaired": bool(repaired), "let go": bool(report.unjoined.let_go)})

    check()
    assert min(seen["prompt"], seen["repaired"], seen["let go"]) >= examples // 12
    assert seen["prompt"] + seen["repaired"] > 0
