"""Directories that another user can change or replace are refused, whichever component of the path it is."""

from __future__ import annotations

import os
import pickle
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from delta_py.storage.cache.disk_cache import DiskCache, entry_name
from delta_py.storage.cache.private_directory import PrivateDirectory, UnsafeDirectoryError

T = TypeVar("T")

NAME = entry_name(b"what it is", "object")
MANY = 1 << 40
USER, OTHER = 64_001, 64_002

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as other users")


def as_user(user: int, call: Callable[[], T]) -> T:
    """The call's result or error in a process of another user."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            outcome: tuple[object, BaseException | None] = (call(), None)
        except BaseException as error:
            outcome = (None, OSError(f"{type(error).__name__}: {error}"))
        os.write(sink, pickle.dumps(outcome))
        os._exit(0)
    os.close(sink)
    with os.fdopen(source, "rb") as answers:
        value, error = pickle.loads(answers.read())
    os.waitpid(child, 0)
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def cache_in(directory: Path) -> DiskCache:
    return DiskCache(directory, MANY, PrivateDirectory.open(directory))


def is_same(directory: PrivateDirectory, path: Path) -> bool:
    opened, there = os.fstat(directory.descriptor), path.stat()
    return (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)


def test_missing_directories_are_made_for_the_user_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with PrivateDirectory.open(tmp_path / "a" / "b") as directory:
            assert is_same(directory, tmp_path / "a" / "b")
    finally:
        os.umask(umask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700, 0o700]
    with pytest.raises(FileNotFoundError):
        PrivateDirectory.open(tmp_path / "c", make=False)


def test_relative_path_is_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    for path in ("b", "./b", "../a/b/", "b/../b"):
        with PrivateDirectory.open(path) as directory:
            assert is_same(directory, tmp_path / "a" / "b"), path


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o2775])
@pytest.mark.parametrize("place", ["a", "a/b", "a/b/cache"])
def test_component_that_others_can_write_to_is_refused_by_name(tmp_path: Path, place: str, mode: int) -> None:
    (tmp_path / "a" / "b" / "cache").mkdir(parents=True)
    (tmp_path / place).chmod(mode)
    with pytest.raises(UnsafeDirectoryError) as raised:
        PrivateDirectory.open(tmp_path / "a" / "b" / "cache")
    assert str(raised.value) == f"{tmp_path / place} can be changed by other users (mode {mode:o})"


def test_sticky_bit_is_enough_for_an_ancestor_only(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    PrivateDirectory.open(shared / "cache").close()
    with pytest.raises(UnsafeDirectoryError, match=r"mode 1777"):
        PrivateDirectory.open(shared)


@pytest.mark.parametrize("target", ["real", "../a/real", "{root}/a/real", "second"])
def test_link_of_the_user_is_followed_and_its_target_is_checked(tmp_path: Path, target: str) -> None:
    (tmp_path / "a" / "real" / "cache").mkdir(parents=True)
    (tmp_path / "a" / "second").symlink_to("real")
    (tmp_path / "a" / "link").symlink_to(target.format(root=tmp_path))
    path = tmp_path / "a" / "link" / "cache"
    with PrivateDirectory.open(path) as directory:
        assert is_same(directory, tmp_path / "a" / "real" / "cache")
    (tmp_path / "a" / "real").chmod(0o777)
    with pytest.raises(UnsafeDirectoryError, match="real can be changed by other users"):
        PrivateDirectory.open(path)


def test_link_to_a_shared_directory_is_as_unsafe_as_that(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "link").symlink_to(tmp_path / "shared")
    with pytest.raises(UnsafeDirectoryError, match="shared can be changed by other users"):
        PrivateDirectory.open(tmp_path / "link")


@pytest.mark.parametrize("kind", ["file", "circle", "pipe"])
def test_non_directory_is_an_error_and_leaves_no_descriptor(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    match kind:
        case "file":
            place.touch()
        case "circle":
            place.symlink_to("place")
        case "pipe":
            os.mkfifo(place)
    before = len(os.listdir("/proc/self/fd"))
    for path in (place, place / "cache"):
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            PrivateDirectory.open(path)
    assert len(os.listdir("/proc/self/fd")) == before


# ---------------------------------------------------------------- other users


@needs_root
@pytest.mark.parametrize("place", ["a", "a/b", "a/b/cache"])
def test_component_of_another_user_is_refused_by_name(tmp_path: Path, place: str) -> None:
    (tmp_path / "a" / "b" / "cache").mkdir(parents=True)
    os.chown(tmp_path / place, OTHER, OTHER)
    with pytest.raises(UnsafeDirectoryError) as raised:
        PrivateDirectory.open(tmp_path / "a" / "b" / "cache")
    assert str(raised.value) == f"{tmp_path / place} belongs to user {OTHER}"


@needs_root
def test_link_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "real").mkdir()
    (tmp_path / "shared" / "cache").symlink_to(tmp_path / "real")
    os.chown(tmp_path / "shared" / "cache", OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(UnsafeDirectoryError, match=f"cache is a symbolic link that belongs to user {OTHER}"):
        PrivateDirectory.open(tmp_path / "shared" / "cache")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory like /tmp, in one that every user can pass through; pytest's directories are not."""
    with tempfile.TemporaryDirectory(prefix="pydelta-test-") as directory:
        Path(directory).chmod(0o711)
        shared = Path(directory, "shared")
        shared.mkdir()
        shared.chmod(0o1777)
        yield shared


@needs_root
def test_user_gets_a_private_cache_below_root_or_user_folders(shared: Path) -> None:
    home = shared.parent / "home"
    home.mkdir(mode=0o711)  # the user may pass through it, but not list it
    (home / "user").mkdir()
    os.chown(home / "user", USER, USER)
    for place in (shared / "cache", home / "user" / ".cache" / "pydelta"):
        assert as_user(USER, lambda place=place: cache_in(place).put(NAME, b"content"))  # type: ignore[misc]
        assert (place.stat().st_uid, stat.S_IMODE(place.stat().st_mode)) == (USER, 0o700)
        assert as_user(USER, lambda place=place: cache_in(place).read(NAME)) == b"content"  # type: ignore[misc]
        with pytest.raises(OSError, match="UnsafeDirectoryError"):
            as_user(OTHER, lambda place=place: PrivateDirectory.open(place).descriptor)  # type: ignore[misc]


@needs_root
def test_directory_that_another_user_swaps_in_is_not_read(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent of the cache belongs to another user, who replaces the cache by a directory with foreign entries."""
    parent = shared / "project"
    parent.mkdir()
    os.chown(parent, OTHER, OTHER)
    (parent / "cache").mkdir(mode=0o700)
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(parent / "cache"))
    assert DiskCache.of_environment() is None
    os.chown(parent, 0, 0)
    cache = DiskCache.of_environment()
    assert cache is not None and cache.put(NAME, b"content")

    def swap() -> None:
        (parent / "cache").rename(parent / "aside")
        (parent / "cache").mkdir()
        (parent / "cache" / NAME).write_bytes(b"of the attacker")

    parent.chmod(0o777)
    as_user(OTHER, swap)
    assert cache.read(NAME) == b"content", "of the directory that was opened"
    assert cache.put(NAME, b"new")
    assert (parent / "cache" / NAME).read_bytes() == b"of the attacker", "nothing is written there"
    assert DiskCache.of_environment() is None
