"""Statistics for property tests: any number of bins, negative lags, methods with costs of their own."""

from __future__ import annotations

from hypothesis import strategies as st

from windrow.plan.cost import COMPARISONS, Statistics, StepCost, StepStatistics, StreamStatistics

COSTS = (
    COMPARISONS,
    StepCost(per_probe=2e-6, per_candidate=4e-9, per_result=5e-8),
    StepCost(per_probe=0.0, per_candidate=0.0, per_result=1e-7),
)


@st.composite
def joins(draw: st.DrawFn, most_streams: int = 4, most_bins: int = 5) -> Statistics:
    """A join of two or more streams."""
    count = draw(st.integers(2, most_streams))
    streams = tuple(
        StreamStatistics(draw(st.floats(1, 500)), draw(st.sampled_from((1.0, 10.0, 60.0)))) for _ in range(count)
    )
    return Statistics(streams, tuple(_steps(draw, i, count, most_bins) for i in range(count)))


def _steps(draw: st.DrawFn, driver: int, count: int, most_bins: int) -> tuple[StepStatistics, ...]:
    order = draw(st.permutations([stream for stream in range(count) if stream != driver]))
    steps = []
    for stream in order:
        bins = draw(st.integers(1, most_bins))
        scores = draw(st.lists(st.sampled_from((0.0, 0.001, 0.01, 0.1, 0.3, 1.0)), min_size=bins, max_size=bins))
        widths = draw(st.lists(st.sampled_from((0.05, 0.2, 0.25, 1.0)), min_size=bins, max_size=bins))
        steps.append(
            StepStatistics(
                stream,
                draw(st.sampled_from((0.0, 1e-5, 1e-3, 0.01, 0.2))),
                tuple(scores),
                tuple(widths) if draw(st.booleans()) else (),
                draw(st.sampled_from((1.0, 0.02))),
                draw(st.sampled_from(COSTS)),
            )
        )
    return tuple(steps)
