"""Figure 14: output rate over the size b of basic windows, for κ3 = 25, 50, 75 (section VI-B.4).

Smaller basic windows find more up to a point; still smaller ones hurt. The best size grows as time correlations weaken,
and the curve of the weakest ones is the flattest. At most 20 basic windows a window are advised; the default is b = 2.

Ours: nonaligned streams at 200 rows a second (the text gives neither rates nor sizes) on the machine of `capacity`,
where a choice takes the longer the more basic windows there are; sizes from .05 s, 400 of them a window, to 20 s, one.
Conditions are `DEARER` times as dear, as in Figure 12: with less to shed, all sizes find nearly everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.capacity import Workload, machine, output_hz
from windrow.papers.grubjoin.scenario import Scenario
from windrow.papers.tables import Table

RATE_HZ, DEARER = 200.0, 2
NOISE = (25, 50, 75)
SIZES_S, QUICK_SIZES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0), (0.05, 0.2, 2.0, 10.0)
DEFAULT_S, MOST_BINS = 2.0, 20
RUNS, QUICK_RUNS = 5, 1
NEARLY = 0.9


def run(quick: bool, seed: int) -> Outcome:
    """All sizes, all deviations."""
    seeds = range(seed, seed + (QUICK_RUNS if quick else RUNS))
    return sizes(Scenario(RATE_HZ), NOISE, QUICK_SIZES_S if quick else SIZES_S, seeds)


def sizes(scenario: Scenario, noise: Sequence[float], sizes_s: Sequence[float], seeds: range) -> Outcome:
    """The same with these deviations of the third stream and these sizes, as means over these seeds."""
    first, second, _ = scenario.noise
    rows = []
    for third in noise:
        for bin_s in sizes_s:
            cut = replace(scenario, noise=(first, second, third), bin_s=bin_s)
            runs = (Workload.of(cut, seed).grubjoin(machine(DEARER)) for seed in seeds)
            rows.append((third, bin_s, cut.bins, fmean(output_hz(cut, ran) for ran in runs)))
    table = Table.of(("noise", "bin_s", "bins", "output_hz"), rows)
    series = tuple(Series.of(table.where(noise=value), f"κ3 = {value:g}", x="bin_s", y="output_hz") for value in noise)
    return Outcome(table, _claims(table, noise), (Chart("basic window b (s)", "results a second", series),))


def _claims(table: Table, noise: Sequence[float]) -> tuple[Claim, ...]:
    of = {value: table.where(noise=value) for value in noise}
    best_s = {value: _best_s(found) for value, found in of.items()}
    spread = {value: max(_outputs(found)) / min(_outputs(found)) for value, found in of.items()}
    strongest, weakest = min(noise), max(noise)
    allowed = {
        value: max(hz for hz, n in zip(_outputs(found), found.numbers("bins"), strict=True) if n <= MOST_BINS)
        for value, found in of.items()
    }
    kept = min(allowed[value] / max(_outputs(found)) for value, found in of.items())
    default = min(found.where(bin_s=DEFAULT_S).numbers("output_hz")[0] / max(_outputs(found)) for found in of.values())
    return (
        Claim(
            "smaller basic windows find more up to a point, then less",
            "one best size between",
            ", ".join(f"κ3 = {value:g}: best at {size:g} s" for value, size in best_s.items()),
            all(min(found.numbers("bin_s")) < best_s[v] < max(found.numbers("bin_s")) for v, found in of.items()),
        ),
        Claim(
            "the best size grows as correlations weaken",
            "yes",
            f"{best_s[strongest]:g} s to {best_s[weakest]:g} s",
            best_s[weakest] >= best_s[strongest],
        ),
        Claim(
            "the size matters least where correlations are weakest",
            "the flattest curve",
            ", ".join(f"κ3 = {value:g}: best / worst {ratio:.2f}" for value, ratio in spread.items()),
            spread[weakest] == min(spread.values()),
        ),
        Claim(
            f"no need to go beyond {MOST_BINS} basic windows; the default is b = {DEFAULT_S:g} s",
            "advised",
            f"up to {MOST_BINS}: {kept:.2f} of the best or more; the default: {default:.2f}",
            kept >= NEARLY and default >= NEARLY,
        ),
    )


def _outputs(table: Table) -> tuple[float, ...]:
    return table.numbers("output_hz")


def _best_s(table: Table) -> float:
    outputs = _outputs(table)
    return table.numbers("bin_s")[outputs.index(max(outputs))]


EXPERIMENT = Experiment("grubjoin/figure14", "Output over the size of basic windows", run)
