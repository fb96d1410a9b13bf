"""The benchmark table of the README, from what `windrow bench --json FILE` wrote: no figure is written by hand.

    windrow bench band equality --json bench.json
    python scripts/bench_table.py bench.json          writes the table between the README's marks

Rows with a peer are shown, in the order they were measured. What was measured when is said below the table.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parent.parent / "README.md"
PART = re.compile(r"<!-- begin: bench -->\n.*?<!-- end: bench -->", re.DOTALL)


def table(measured: Mapping[str, Sequence[Mapping[str, Any]]], machine: str, day: str) -> str:
    """The table of some measurements."""
    lines = ["| | ours | peer | | goal |", "|---|---:|---:|---:|---|"]
    for rows in measured.values():
        for row in rows:
            if row.get("peer") is None:
                continue
            unit, met = row["unit"], "" if row["met"] is None else ("met" if row["met"] else "**missed**")
            peer = f"{row['peer']} {unit} ({row['peer_name'] or 'peer'})"
            goal = f"{row['goal']} {met}".strip()
            lines.append(f"| {row['name']} | {row['ours']} {unit} | {peer} | {row['ratio']} | {goal} |")
    command = f"windrow bench {' '.join(measured)}"
    lines += ["", f"`{command}` on {machine}, {day}; the fourth column is the ratio of the two within one run."]
    return "\n".join(lines)


def filled(readme: str, part: str) -> str:
    """The README with another table."""
    if not PART.search(readme):
        raise SystemExit("README.md has no marks for the table")
    return PART.sub(lambda _: f"<!-- begin: bench -->\n\n{part}\n\n<!-- end: bench -->", readme)


def main(arguments: list[str]) -> int:
    """Write the table of a file of measurements."""
    from windrow.plan.calibration import machine

    if len(arguments) != 1:
        print("usage: python scripts/bench_table.py bench.json")
        return 2
    place = Path(arguments[0])
    measured = json.loads(place.read_text(encoding="utf-8"))
    day = datetime.fromtimestamp(place.stat().st_mtime, UTC).date().isoformat()
    README.write_text(filled(README.read_text(encoding="utf-8"), table(measured, machine(), day)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
