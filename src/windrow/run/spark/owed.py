"""What a commit says of repairs: what waits, what was repaired, what was forgotten; read without Spark.

The driver program writes it (`windrow.run.spark.repairing`).
"""

from __future__ import annotations

from typing import Any

from windrow.control.ledger import Ledger
from windrow.errors import StateError
from windrow.run.backlog import RepairReport, report_of
from windrow.run.spark.state import Commit

FORMAT_VERSION = 1


def repair_of(commit: Commit | None) -> RepairReport | None:
    """What became of what was left out; None where it does not come later."""
    values = None if commit is None else checked(commit.ledger)
    if values is None:
        return None
    return report_of(Ledger.from_values(values["ledger"]), int(values["results"]), float(values["seconds"]))


def checked(values: Any) -> Any:
    """What a commit keeps, of this version."""
    if values is not None and values.get("version") != FORMAT_VERSION:
        message = f"what is to be repaired has format version {values.get('version')}, this is {FORMAT_VERSION}"
        raise StateError(message, hint="repair with the version that wrote it, or start with a new checkpoint")
    return values
