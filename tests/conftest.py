"""What all tests share: reproducible property tests, where the recorded streams are, and one Spark session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parent.parent

# A slow machine may not change the verdict: no deadline, no health check of speed, the same examples every time.
settings.register_profile("windrow", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("windrow")


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of recorded streams: $WINDROW_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("WINDROW_DATA", REPOSITORY.parent / "shared" / "data"))
    if not any(folder.glob("*.parquet")):
        pytest.skip(f"no recorded streams in {folder}: set WINDROW_DATA")
    return folder


# Most of Spark's code runs a few times in a test: to compile it well takes longer than to run it. Half the processor
# time; for sessions here and in programs that tests start.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small, quiet local session for all tests; its workers run this Python and import this package."""
    from pyspark.sql import SparkSession

    import windrow
    from windrow.run.spark.sources import register

    folder = tmp_path_factory.mktemp("spark")
    package = str(Path(windrow.__file__).resolve().parent.parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH")))))
        builder = SparkSession.builder.master("local[2]").appName("windrow tests")
        for name, value in (SPARK_SETTINGS | {"spark.sql.warehouse.dir": str(folder / "warehouse")}).items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        register(session)
        yield session
        session.stop()


@pytest.fixture
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Predicates run as plain Python, which is slower a pair and needs no compilation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_COMPILE", "0")
        patch.setenv("WINDROW_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield
