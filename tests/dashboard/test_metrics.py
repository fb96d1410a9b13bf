"""Metrics: every one is documented, has its unit in its name, and says what the page says."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import REPOSITORY
from tests.dashboard import made
from windrow.dashboard.history import Reader
from windrow.dashboard.metrics import METRICS, SPARK_METRICS, exposition, serve_metrics
from windrow.run.spark.listener import ProgressBridge


def values_of(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_metrics_say_what_the_page_says(runs: Path) -> None:
    view, found = made.seen(runs / "throttled"), values_of(exposition(made.history_of(runs / "throttled")))
    assert found["windrow_results_total", ()] == view["head"]["results"]
    assert found["windrow_repaired_results_total", ()] == view["head"]["repaired"] > 0
    for stream in view["streams"]:
        assert found["windrow_rows_total", (("stream", stream["name"]),)] == stream["rows"]
        assert found["windrow_window_bytes", (("stream", stream["name"]),)] == stream["bytes"]
    assert found["windrow_throttle_ratio", ()] == 0.4
    assert found["windrow_recall_ratio", (("span", "whole"),)] == view["head"]["recall"]["share"]
    assert found["windrow_ledger_pieces", (("state", "open"),)] == 0


def test_there_are_none_before_the_first_event(tmp_path: Path) -> None:
    assert values_of(exposition(made.history_of(tmp_path))) == {}


def test_every_metric_is_documented_and_every_documented_one_is_there() -> None:
    page = (REPOSITORY / "docs" / "metrics.md").read_text()
    documented = set(re.findall(r"^\| `(windrow_\w+)` \| (counter|gauge) ", page, re.MULTILINE))
    ours = {(f"{each.name}_total", "counter") if each.counts else (each.name, "gauge") for each in METRICS}
    assert documented == ours | {(f"windrow_spark_{name}", "gauge") for name in SPARK_METRICS}


def test_the_grafana_dashboard_asks_for_metrics_that_are_there() -> None:
    text = (REPOSITORY / "docs" / "grafana.json").read_text()
    panels = json.loads(text)["panels"]
    names = {f"{each.name}_total" if each.counts else each.name for each in METRICS}
    asked = {
        name for panel in panels for target in panel["targets"] for name in re.findall(r"windrow_\w+", target["expr"])
    }
    assert len(asked) > 10
    assert asked <= names


def test_metrics_are_served_beside_a_run_with_what_spark_says(runs: Path) -> None:
    bridge = ProgressBridge()
    progress = SimpleNamespace(
        runId="r1", id="q1", name="near\nx", batchId=7, numInputRows=12, inputRowsPerSecond=float("nan"),
        processedRowsPerSecond=4.5, batchDuration=250,
    )  # fmt: skip
    bridge.onQueryProgress(SimpleNamespace(progress=progress))
    server = serve_metrics(0, Reader(str(runs / "near")), bridge.numbers)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=10) as answer:
            found = values_of(answer.read())
    finally:
        server.shutdown()
        server.server_close()
    label = (("query", "near\nx"),)
    assert found["windrow_spark_batch_id", label] == 7
    assert found["windrow_spark_batch_duration_seconds", label] == 0.25
    assert ("windrow_spark_input_rows_per_second", label) not in found
    assert found["windrow_results_total", ()] > 0
    bridge.onQueryTerminated(SimpleNamespace(runId="r1"))
    assert bridge.numbers() == {}


@pytest.mark.parametrize("each", METRICS, ids=lambda each: each.name)
def test_names_have_their_unit(each: object) -> None:
    name = each.name  # type: ignore[attr-defined]
    assert re.fullmatch(r"windrow(_[a-z]+)+", name)
    assert name.rpartition("_")[2] in {"rows", "bytes", "seconds", "results", "batches", "ratio", "pairs", "pieces"}
