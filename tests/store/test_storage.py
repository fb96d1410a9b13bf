"""Storages: the same contract on a folder and on an object store; what differs is tested apart."""

from __future__ import annotations

import errno
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from tests.store.object_store import object_storage
from windrow.errors import SourceError
from windrow.store import cache as caches
from windrow.store.cache import Cache
from windrow.store.storage import LocalStorage, RemoteStorage, Storage, checked_name, open_storage, shown


@pytest.fixture(autouse=True)
def _temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches are made below the test's own folder, and are not shared between tests."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(caches, "_caches", {})


def local(folder: Path) -> Storage:
    return LocalStorage(folder / "local")


def remote(folder: Path) -> Storage:
    (folder / "objects").mkdir(exist_ok=True)
    return object_storage(folder / "objects")


both = pytest.mark.parametrize("make", [local, remote])
Make = Callable[[Path], Storage]


@both
def test_whole_objects(make: Make, tmp_path: Path) -> None:
    storage = make(tmp_path)
    assert storage.list() == ()
    storage.put("commits/1.json", b"one")
    storage.put("commits/1.json", pa.py_buffer(b"two"))
    storage.put("segments/deep/a.arrow", memoryview(b""))
    assert storage.get("commits/1.json") == b"two"
    assert storage.find("segments/deep/a.arrow") == b""
    assert storage.find("commits/2.json") is None
    assert storage.list() == ("commits/1.json", "segments/deep/a.arrow")
    assert storage.list("segments") == ("segments/deep/a.arrow",)
    assert storage.list("nothing") == ()
    storage.delete("commits/1.json")
    storage.delete("commits/1.json")
    assert storage.list() == ("segments/deep/a.arrow",)


@both
def test_an_object_appears_when_it_is_complete(make: Make, tmp_path: Path) -> None:
    storage = make(tmp_path)
    with storage.writing("a") as sink:
        sink.write(b"first ")
        assert storage.find("a") is None
        sink.write(b"second")
        assert (storage.list(), sink.tell()) == ((), 12)
    assert storage.get("a") == b"first second"


@both
def test_an_object_whose_writing_fails_does_not_exist(make: Make, tmp_path: Path) -> None:
    storage = make(tmp_path)

    def write_half() -> None:
        with storage.writing("new") as sink:
            sink.write(b"half")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        write_half()
    assert storage.find("new") is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@both
@pytest.mark.parametrize("name", ["", "/etc/passwd", "..", "a/../b", "a//b", "a/", ".hidden", "a/.b", "a\\b", "a\0b"])
def test_names_stay_below_the_address(make: Make, name: str, tmp_path: Path) -> None:
    storage = make(tmp_path)
    for use in (storage.get, storage.delete, storage.local, storage.fetch, lambda each: storage.put(each, b"")):
        with pytest.raises(SourceError, match="is not a name of an object"):
            use(name)


@both
def test_missing_objects_are_named_with_their_address(make: Make, tmp_path: Path) -> None:
    storage = make(tmp_path)
    for use in (storage.get, storage.fetch):
        with pytest.raises(SourceError, match=r"there is no 'segments/a'") as caught:
            use("segments/a")
        assert caught.value.place == storage.place("segments/a")
        assert caught.value.hint
    assert "secret" not in storage.place("segments/a")


@both
def test_storages_travel(make: Make, tmp_path: Path) -> None:
    make(tmp_path).put("a", b"here")
    travelled = pickle.loads(pickle.dumps(make(tmp_path)))
    assert travelled.get("a") == travelled.fetch("a").read_bytes() == b"here"
    assert open_storage(travelled) is travelled


def test_local_folders_are_private_and_files_keep_their_place(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "state" / "here")
    storage.put("segments/a", b"1")
    for folder in ("state", "state/here", "state/here/segments"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
    assert storage.fetch("segments/a") == storage.local("segments/a") == tmp_path / "state/here/segments/a"
    mapped = storage.fetch("segments/a").open("rb")
    storage.put("segments/a", b"2")
    assert (mapped.read(), storage.get("segments/a")) == (b"1", b"2")
    mapped.close()
    assert sorted(path.name for path in (tmp_path / "state/here/segments").iterdir()) == ["a"]


def test_what_a_killed_writer_left_is_not_an_object(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from windrow.store.storage import LocalStorage\n"
        "with LocalStorage(sys.argv[1]).writing('a') as sink:\n"
        "    sink.write(b'half'); sink.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path / "state")], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "state").iterdir())) == 1
    assert LocalStorage(tmp_path / "state").list() == ()


def test_what_the_system_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    storage = LocalStorage(tmp_path / "file")
    with pytest.raises(SourceError, match=r"'a/b' cannot be written: .* \(at: .*file/a/b\)\. Next: "):
        storage.put("a/b", b"")
    with pytest.raises(SourceError, match=r"'a' cannot be read: Not a directory"):
        storage.get("a")


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage("state").address == str(tmp_path / "state")
    assert open_storage("C:x").address == str(tmp_path / "C:x")
    for uri in (f"file://{tmp_path}/a%20b", f"file:{tmp_path}/a%20b", f"file://localhost{tmp_path}/a%20b"):
        assert open_storage(uri).address == str(tmp_path / "a b")
    elsewhere = open_storage("mock:///bucket/folder")
    assert isinstance(elsewhere, RemoteStorage)
    elsewhere.put("a/b", b"made with its folder")
    assert (elsewhere.get("a/b"), elsewhere.list(), elsewhere.list("a")) == (
        b"made with its folder",
        ("a/b",),
        ("a/b",),
    )
    assert elsewhere.fetch("a/b").read_bytes() == b"made with its folder"
    hadoop = open_storage("s3a://key:secret@bucket/folder?region=eu-north-1&allow_bucket_creation=false")
    assert isinstance(hadoop, RemoteStorage)
    assert isinstance(hadoop.filesystem, fs.S3FileSystem)
    assert (hadoop.root, hadoop.place("a")) == ("bucket/folder", "s3a://key:***@bucket/folder/a")


@pytest.mark.parametrize("address", ["", "file://elsewhere/state", "nowhere://user:secret@host/state"])
def test_addresses_that_cannot_be_opened(address: str) -> None:
    with pytest.raises(SourceError) as caught:
        open_storage(address)
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_passwords_are_not_shown() -> None:
    assert shown("abfs://box@account.example/dir?sv=token") == "abfs://box@account.example/dir"
    assert shown("/folder/with?mark@sign:too") == "/folder/with?mark@sign:too"
    assert checked_name("a/b-c.d/e..f") == "a/b-c.d/e..f"


def test_objects_are_copied_once_and_the_least_recently_used_copy_goes_first(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    storage = object_storage(tmp_path / "objects", cache_bytes=250)
    for name in "abcd":
        storage.put(name, name.encode() * 100)
    gets = storage.filesystem.handler.calls
    first, second = storage.fetch("a"), storage.fetch("b")
    assert storage.local("a") is None
    assert (storage.fetch("a"), gets["get"]) == (first, 2)
    third = storage.fetch("c")
    assert (first.exists(), second.exists(), third.exists()) == (True, False, True)
    assert storage.fetch("b").read_bytes() == b"b" * 100
    assert (first.exists(), gets["get"]) == (False, 4)
    assert stat.S_IMODE(third.parent.stat().st_mode) == 0o700
    storage.put("c", b"another")
    assert storage.fetch("c").read_bytes() == b"another"
    storage.delete("c")
    with pytest.raises(SourceError, match="there is no 'c'"):
        storage.fetch("c")
    assert "rename" not in gets


def test_a_copy_larger_than_the_cache_is_kept_until_the_next(tmp_path: Path) -> None:
    cache = Cache(10, tmp_path)

    def copy(path: Path) -> None:
        path.write_bytes(b"x" * 20)

    large = cache.fetch("large", copy)
    assert (large.exists(), cache.nbytes) == (True, 20)
    mapped = pa.memory_map(str(large))
    next_one = cache.fetch("next", copy)
    assert (large.exists(), next_one.exists(), cache.nbytes) == (False, True, 20)
    assert mapped.read() == b"x" * 20
    next_one.unlink()
    assert cache.fetch("next", copy).exists()
    assert cache.nbytes == 20


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    cache = Cache(10, tmp_path)

    def copy(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("cut off")

    with pytest.raises(OSError, match="cut off"):
        cache.fetch("a", copy)
    assert (cache.nbytes, [path.name for path in cache.folder.iterdir()]) == (0, ["owner"])


def test_folders_of_ended_processes_are_removed_and_those_of_living_ones_are_not(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from windrow.store.cache import Cache\n"
        "cache = Cache(10, Path(sys.argv[1]))\n"
        "print(cache.folder, flush=True)\n"
        "if sys.argv[2] == 'killed': os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    folders = []
    for end in ("killed", "regular"):
        command = [sys.executable, "-c", program, str(tmp_path), end]
        found = subprocess.run(command, check=False, capture_output=True, text=True)
        folders.append(Path(found.stdout.strip()))
        assert folders[-1].exists() == (end == "killed"), found.stderr
        folders[-1].mkdir(exist_ok=True)
        (folders[-1] / "owner").touch()
    living = Cache(10, tmp_path)
    assert [folder.exists() for folder in folders] == [False, False]
    other = Cache(10, tmp_path)
    assert living.folder.exists()
    living.close()
    assert (living.folder.exists(), other.folder.exists()) == (False, True)


def test_a_fork_makes_its_own_cache_and_leaves_the_first_alone(tmp_path: Path) -> None:
    program = (
        "import os, sys, tempfile\n"
        "from windrow.store.cache import process_cache\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "mine = process_cache('here', 10)\n"
        "if os.fork() == 0:\n"
        "    own = process_cache('here', 10)\n"
        "    print(own.folder != mine.folder, own is process_cache('here', 10), flush=True)\n"
        "    sys.exit(0)\n"
        "os.wait()\n"
        "print(mine.folder.exists(), len(os.listdir(sys.argv[1])))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "temporary")]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout.split("\n") == ["True True", "True 1", ""]
    assert list((tmp_path / "temporary").iterdir()) == []


@both
def test_a_new_object_replaces_none(make: Make, tmp_path: Path) -> None:
    storage = make(tmp_path)
    assert storage.put_new("commits/1", b"one")
    assert not storage.put_new("commits/1", b"two")
    assert not storage.put_new("commits/1", b"one")
    assert storage.get("commits/1") == b"one"
    storage.delete("commits/1")
    assert storage.put_new("commits/1", b"two")
    assert storage.list() == ("commits/1",)


@both
def test_of_many_that_put_at_once_one_makes_the_object(make: Make, tmp_path: Path) -> None:
    storage = make(tmp_path)
    for name in map(str, range(20)):
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda k, name=name: storage.put_new(name, bytes([k])), range(8)))
        (held,) = storage.get(name)
        assert made[held]
        assert isinstance(storage, RemoteStorage) or sum(made) == 1


def test_folders_without_links_look_before_they_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path, _target: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    storage = LocalStorage(tmp_path / "state")
    assert storage.put_new("a", b"1")
    assert not storage.put_new("a", b"2")
    assert (storage.get("a"), storage.list()) == (b"1", ("a",))
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["a"]


@both
def test_many_objects_are_deleted_and_no_others(make: Make, tmp_path: Path) -> None:
    storage = make(tmp_path)
    for k in range(20):
        storage.put(f"s/{k}", b"x")
    storage.delete_all([f"s/{k}" for k in range(0, 30, 2)])
    storage.delete_all([])
    assert storage.list() == tuple(sorted(f"s/{k}" for k in range(1, 20, 2)))
