"""What notebooks show is escaped, whatever names and texts there are."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from windrow.plan.order import plan_query
from windrow.query.markup import section, table
from windrow.run.status import Status

ILL = "<script>alert(1)</script>"


def test_everything_is_escaped() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), (ILL, pa.string())])
    text = (
        f'SELECT a."{ILL}" AS "{ILL}" FROM a, b WHERE a."{ILL}" = b."{ILL}" AND a."{ILL}" <> \'{ILL}\' WINDOW 1 SECOND'
    )
    query = windrow.sql(text, {"a": schema, "b": schema})
    pages = [
        query._repr_html_() or "",
        query.spec()._repr_html_(),
        plan_query(query.spec())._repr_html_(),
        Status({"name": ILL, "streams": {ILL: {ILL: ILL}}})._repr_html_(),
        table((ILL,), [(ILL,)]),
        section(ILL, ILL),
    ]
    assert all("&lt;script&gt;" in page for page in pages)
    assert not any("<script" in page for page in pages)


def test_a_query_that_is_not_complete_has_no_tables() -> None:
    assert windrow.join()._repr_html_() is None
    assert repr(windrow.join()) == "<Join of no streams: 0 conditions>"


def test_a_report_without_batches_says_so() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int64())])
    query = windrow.sql("SELECT a.x AS x FROM a, b WHERE a.x = b.x WINDOW 1 SECOND", dict.fromkeys("ab", schema))
    with windrow.local(query) as join:
        assert "history" not in join.report.to_dict()
        assert "0 rows in" in join.report._repr_html_()
        with pytest.raises(windrow.UsageError, match="nothing to draw"):
            join.report.plot()
