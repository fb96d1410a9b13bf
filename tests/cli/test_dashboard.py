"""`windrow dashboard`, and the options of `windrow run` that it and metrics live on."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.cli.conftest import Command
from tests.cli.recordings import NEAR, cameras_and_query
from windrow.cli.watching import events_folder, metrics_served

HERE = ("run", "--runtime", "local", "--out", "near.parquet", "--json")


def test_a_run_here_leaves_events_that_the_page_shows(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder, NEAR)
    ended = windrow_command(*HERE, *arguments, "--events", "near.events", "--metrics", "0")
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    shown = windrow_command("dashboard", "near.events", "--json")
    assert (shown.code, shown.err) == (0, "")
    view = json.loads(shown.out)
    assert (view["state"], view["title"]) == ("finished", "near.events")
    assert view["head"]["results"] == report["results"] > 0
    assert view["events"] == report["batches"] > 10
    assert max(view["series"]["span_s"][1:], key=lambda span: span or 0) < 60
    assert not (folder / "near.parquet.events").exists()


def test_a_folder_that_is_not_there_is_one_line(windrow_command: Command) -> None:
    ended = windrow_command("dashboard", "nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no folder 'nowhere'" in ended.err
    assert ended.err.count("\n") == 1


def test_metrics_of_a_port_that_is_taken_are_one_line(windrow_command: Command, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = windrow_command(*HERE, *cameras_and_query(folder, NEAR), "--metrics", port)
    assert (ended.code, ended.out) == (2, "")
    assert f"port {port} cannot be bound" in ended.err
    assert not (folder / "near.parquet").exists()


def test_metrics_without_events_take_a_folder_that_goes_again(tmp_path: Path) -> None:
    with events_folder(None, 0) as made, metrics_served(None, made):
        assert made is not None
        assert Path(made).is_dir()
    assert not Path(made).exists()
    with events_folder("mine", 0) as kept:
        assert kept == "mine"
    with events_folder(None, None) as nothing:
        assert nothing is None


def test_the_command_serves_the_page_until_it_is_interrupted(folder: Path) -> None:
    (folder / "events").mkdir()
    command = [sys.executable, "-c", "from windrow.cli.main import main; main()", "dashboard", ".", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            line = running.stdout.readline()
            url = re.search(r"http://127\.0\.0\.1:\d+/", line)
            assert url, line
            with urllib.request.urlopen(f"{url[0]}view.json", timeout=30) as answer:
                assert json.load(answer)["state"] == "empty"
        finally:
            running.send_signal(2)
            _, said = running.communicate(timeout=30)
    assert "Traceback" not in said
