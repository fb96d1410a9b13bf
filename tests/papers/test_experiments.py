"""The lists of experiments: complete, in order, and named after their modules."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from windrow import papers
from windrow.papers import EXPERIMENTS
from windrow.papers.experiment import Experiment

FOLDER = Path(papers.__file__).parent


def test_every_figure_and_table_is_listed() -> None:
    files = [*FOLDER.glob("*/figure*.py"), *FOLDER.glob("*/table*.py")]
    written = {f"{file.parent.name}/{file.stem}" for file in files}
    assert len(written) >= 7
    assert written <= {experiment.name for experiment in EXPERIMENTS}


def test_names_are_unique() -> None:
    names = [experiment.name for experiment in EXPERIMENTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_an_experiment_lives_in_the_module_of_its_name(experiment: Experiment) -> None:
    module = import_module(f"windrow.papers.{experiment.name.replace('/', '.')}")
    assert module.EXPERIMENT is experiment
    assert len(experiment.about.splitlines()) > 2
    assert experiment.title
