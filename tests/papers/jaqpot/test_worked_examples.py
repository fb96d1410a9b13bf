"""Tables 2 and 4: as printed where the print is right."""

from __future__ import annotations

import pytest

from windrow.papers.jaqpot import table2, table4


def test_table_2() -> None:
    """JQ-07 to JQ-11."""
    outcome = table2.EXPERIMENT.run(True, 1)
    assert outcome.holds
    assert outcome.table.numbers("output_rate") == pytest.approx((4, 5, 1))
    assert outcome.table.numbers("path_productivity") == pytest.approx((4 / 15, 5 / 16, 0.1))


def test_table_4() -> None:
    """JQ-13 to JQ-17: the row of SBestHJP is misprinted, and it ties GrePP."""
    outcome = table4.EXPERIMENT.run(True, 1)
    assert [claim.holds for claim in outcome.claims] == [True, True, True, False, False]
    assert outcome.table.numbers("output") == pytest.approx((450, 678.26087, 750, 1250, 1250))
