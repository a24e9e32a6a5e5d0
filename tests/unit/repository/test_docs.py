"""Statements of README and docs/ about the code: links, options, settings, names of errors. tests/spark runs the code in them."""

from __future__ import annotations

import importlib.util
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

import delta_py
import spark_plugin
from delta_py import as_deltalake
from delta_py.errors import DeltaError
from delta_py.storage.store_options import OPTION_NAMES
from delta_py.streaming.schema_evolution import ALLOW_CONFS
from pydelta_cli.main import COMMANDS
from spark_plugin import exceptions, tables
from spark_plugin.options import read_options, streaming_options, write_options
from spark_plugin.options.read_options import read_options as parse_read
from spark_plugin.options.write_options import write_options as parse_write
from spark_plugin.pruning import status
from tests.support.documents import pages
from tests.support.documents.pages import ROOT

TEXTS = [*pages.PAGES, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]
OPTIONS = (ROOT / "docs" / "options.md").read_text()
SOURCES = [path for package in ("delta_py", "spark_plugin") for path in (ROOT / package).rglob("*.*")]
CODE = "\n".join(path.read_text() for path in SOURCES if path.suffix in (".py", ".java"))
OUR_SUFFIXES = (".py", ".java", ".md", ".txt", ".toml")
MOST_README_LINES = 140
MOST_ARCHITECTURE_BYTES = 15_000
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
CHANGES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
MOST_ENTRY_WORDS = 40


def name_of(page: Path) -> str:
    return page.name


# ---------------------------------------------------------------- form


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= MOST_README_LINES


def test_architecture_is_short() -> None:
    assert (ROOT / "ARCHITECTURE.md").stat().st_size <= MOST_ARCHITECTURE_BYTES


@pytest.mark.parametrize("page", pages.PAGES, ids=name_of)
def test_block_says_whether_it_runs(page: Path) -> None:
    assert {block.language for block in pages.blocks(page)} <= {"python", "bash", "text"}


@pytest.mark.parametrize("page", pages.PAGES, ids=name_of)
def test_page_has_no_code_that_no_test_runs(page: Path) -> None:
    """Indented blocks have no mark; only the two commands at the top of README are indented."""
    indented = re.findall(r"^    \S.*$", pages.without_blocks(page), re.MULTILINE)
    assert [line for line in indented if not line.startswith("    make ")] == []


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_link_points_at_a_file_and_a_heading(page: Path) -> None:
    for link in pages.links(page):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in pages.anchors(target), f"{page.name} links to {link}"


def files_and_folders() -> set[str]:
    """Every file and folder of this repository by its path, and by each end of its path."""
    process = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if process.returncode:
        pytest.skip("this is no clone of the repository")
    files = [PurePosixPath(name) for name in process.stdout.splitlines() if (ROOT / name).exists()]
    paths = {path for file in files for path in (file, *file.parents)}
    return {"/".join(path.parts[start:]) for path in paths for start in range(len(path.parts))}


def is_path(text: str, known_paths: set[str]) -> bool:
    """Whether a text in backticks names a file or a folder of this repository, such as `log/log_writer.py` or `delta_py/log`."""
    if not re.fullmatch(r"\.?\w[\w.-]*(/[\w.-]+)*/?", text):
        return False
    return text.endswith(OUR_SUFFIXES) or ("/" in text and text.partition("/")[0] in known_paths)


@pytest.mark.parametrize("page", [*TEXTS, ROOT / "SECURITY.md"], ids=name_of)
def test_path_that_a_page_names_exists(page: Path) -> None:
    known_paths = files_and_folders()
    named = [text for text in spans(page) if is_path(text, known_paths)]
    assert [text for text in named if text.rstrip("/") not in known_paths] == []


@pytest.mark.parametrize("page", [*TEXTS, ROOT / "SECURITY.md"], ids=name_of)
def test_module_that_a_page_names_exists(page: Path) -> None:
    named = [text for text in spans(page) if re.fullmatch(r"(delta_py|spark_plugin|pydelta_cli)(\.\w+)+(\(\))?", text)]
    assert [text for text in named if not is_importable(text.removesuffix("()"))] == []


def spans(page: Path) -> list[str]:
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", pages.without_blocks(page))


def is_importable(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one. The module that it names itself is not imported:
    spark_plugin.as_delta would change all sessions of the process."""
    module, _, rest = name.partition(".")
    value: object = importlib.import_module(module)
    for part in rest.split("."):
        module = f"{module}.{part}"
        if hasattr(value, part):
            value = getattr(value, part)
        elif inspect.ismodule(value) and importlib.util.find_spec(module):
            if module == name:
                return True
            value = importlib.import_module(module)
        else:
            return False
    return True


def test_readme_links_to_every_page() -> None:
    linked = set(pages.links(ROOT / "README.md"))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked


def test_site_lists_every_page_that_it_contains(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is not listed is an error of `make docs`, which takes minutes."""
    names = SimpleNamespace(**dict.fromkeys(("MkDocsConfig", "File", "Files", "Page")))
    for module in ("config.defaults", "structure.files", "structure.pages"):
        monkeypatch.setitem(sys.modules, f"mkdocs.{module}", names)
    published = runpy.run_path(str(ROOT / "docs" / "site_files.py"))["_published"]()
    listed = set(re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {path.relative_to(ROOT).as_posix() for path in published if path.suffix == ".md"}


def test_changelog_has_the_sections_of_keep_a_changelog() -> None:
    lines = [line for line in CHANGELOG.splitlines() if line.startswith("#")]
    assert lines[0] == "# Changelog"
    versions = [line for line in lines if re.match(r"## ", line)]
    assert all(re.fullmatch(r"## \d+\.\d+\.\d+ \((not released|\d{4}-\d\d-\d\d)\)", version) for version in versions)
    for version in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert kinds and kinds == [kind for kind in CHANGES if kind in kinds], f"{version.splitlines()[0]} has {kinds}"
        assert not re.search(r"^- ", version.partition("### ")[0], re.MULTILINE), "an entry stands above the first section"


def test_changelog_entry_is_short() -> None:
    entries = re.findall(r"^- (.+(?:\n  .+)*)", CHANGELOG, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^- ", CHANGELOG, re.MULTILINE)) > 0
    assert [entry for entry in entries if len(entry.split()) > MOST_ENTRY_WORDS] == []


def public_objects() -> list[Any]:
    """What users import, and the functions of the commands."""
    names = [(module, name) for module in (delta_py, spark_plugin, tables, exceptions) for name in module.__all__]
    objects = [
        getattr(module, name) for module, name in names if module is not exceptions or name.endswith(("Error", "Exception"))
    ]
    return [*objects, status, *COMMANDS]


@pytest.mark.parametrize(
    "public_object", public_objects(), ids=lambda public_object: f"{public_object.__module__}.{public_object.__qualname__}"
)
def test_public_name_is_on_an_api_page(public_object: Any) -> None:
    text = "\n".join(page.read_text() for page in sorted((ROOT / "docs" / "api").glob("*.md")))
    documented = set()
    for name, options in re.findall(r"^::: (\S+)\n((?:    .+\n)*)", text, re.MULTILINE):
        members = re.search(r"members: \[(.+)\]", options)
        documented |= {f"{name}.{member}" for member in members[1].split(", ")} if members else {name}
    name = f"{public_object.__module__}.{public_object.__qualname__}"
    assert name in documented or (public_object.__module__ in documented and issubclass(public_object, DeltaError))


PAGE = """
```python
rows = [1, 2]
path = "/data/t"
len(rows)                                                       # => {length}
```
"""


def test_page_with_a_value_that_is_wrong_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(length=2))
    assert pages.run(page, tmp_path) == 1
    page.write_text(PAGE.format(length=3))
    with pytest.raises(AssertionError, match=r"page\.md:5"):
        pages.run(page, tmp_path)


# ---------------------------------------------------------------- options


def documented(place: str) -> set[str]:
    """The options that the table in options.md lists for a place, such as `stream read`."""
    section = OPTIONS.partition("\n## All options\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", section, re.MULTILINE)
    return {name for names, where in rows if place in where.split(", ") for name in re.findall(r"`([\w.]+)`", names)}


def public(*names: str) -> set[str]:
    """Without the options that pydelta and Spark only pass internally."""
    return {name for name in names if not name.startswith("pydelta.") and name != "paths"}


BATCH_READ = public(*read_options._READ_NAMES)
STREAM_READ = public(*streaming_options._STREAM_NAMES, *streaming_options._AS_IN_BATCHES)
BATCH_WRITE = public(*write_options._NAMES)
STREAM_WRITE = (BATCH_WRITE - set(streaming_options._NOT_IN_STREAMS)) | {streaming_options.CHECKPOINT_LOCATION, "queryName"}
PLACES = {"read": BATCH_READ, "stream read": STREAM_READ, "write": BATCH_WRITE, "stream write": STREAM_WRITE}


@pytest.mark.parametrize("place", PLACES)
def test_options_of_a_place_are_those_that_the_code_knows(place: str) -> None:
    assert sorted(documented(place) - PLACES[place]) == [], "options.md has options that the code does not know"
    assert sorted(PLACES[place] - documented(place)) == [], "options.md lacks options"


def test_stream_options_that_batches_ignore_are_documented() -> None:
    assert set(read_options._STREAM_NAMES) <= STREAM_READ


SAMPLES = {
    "path": "/t",
    "timestampAsOf": "2024-01-01",
    "startingTimestamp": "2024-01-01",
    "endingTimestamp": "2024-01-02",
    "startingVersion": "1",
    "endingVersion": "2",
    "versionAsOf": "1",
    "filter": "id = 1",
    "columns": "id, day",
    "timeZone": "Europe/Paris",
    "userMetadata": "load 17",
    "partitionOverwriteMode": "dynamic",
    "maxRecordsPerFile": "1000",
    "targetFileSize": "64mb",
    "compression": "zstd",
    "isolationLevel": "Serializable",
    "txnVersion": "1",
}
CHANGE_FEED = {"readChangeFeed": "true", "startingVersion": "0"}


@pytest.mark.parametrize("name", sorted(documented("read")))
def test_read_option_is_taken_in_any_case_of_letters(name: str) -> None:
    options = {"path": "/t", name: SAMPLES.get(name, "true")}
    if name.startswith(("starting", "ending", "readChange")):
        options = {**CHANGE_FEED, **options}
    if name == "startingTimestamp":
        del options["startingVersion"]
    assert parse_read(options).path == "/t"
    assert parse_read({key.upper(): value for key, value in options.items()}).path == "/t"


@pytest.mark.parametrize("name", sorted(documented("write")))
def test_write_option_is_taken(name: str) -> None:
    beside = {"txnAppId": {"txnVersion": "1"}, "txnVersion": {"txnAppId": "loader"}}.get(name, {})
    overwrite = name not in write_options._MATCHING  # overwrites support these as saves do (test_replace_matching.py)
    assert parse_write({"path": "/t", **beside, name: SAMPLES.get(name, "true")}, overwrite=overwrite).path == "/t"


# ---------------------------------------------------------------- settings and errors

SETTING = r"spark\.(?:pydelta(?!\.(?:s3|gcs|azure|storage|unity)\.)|databricks\.delta)\.[A-Za-z.]*[A-Za-z]|PYDELTA_CACHE_[A-Z]+"
STREAM_SETTINGS = {ALLOW_CONFS + kind for kind in (*streaming_options._ALLOW, "RenameAndDrop")}
SETTINGS = set(re.findall(SETTING, CODE)) - {ALLOW_CONFS}


def test_settings_that_the_code_knows_are_all_documented() -> None:
    assert sorted(SETTINGS - set(re.findall(SETTING, OPTIONS))) == []


@pytest.mark.parametrize("page", pages.PAGES, ids=name_of)
def test_setting_that_a_page_names_is_known(page: Path) -> None:
    assert sorted(set(re.findall(SETTING, page.read_text())) - SETTINGS - STREAM_SETTINGS) == []


def test_store_options_on_their_page_match_the_code() -> None:
    rows = [line.split("|")[1] for line in pages.ON_OBJECT_STORES.read_text().splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`((?:s3|gcs|azure|storage|unity)\.\w+|coordinator(?:\.\w+)?)`", row)}
    assert named == {option.name for option in OPTION_NAMES}


@pytest.mark.parametrize("page", pages.PAGES, ids=name_of)
def test_option_of_a_store_that_a_page_names_is_known(page: Path) -> None:
    named = set(re.findall(r"`(?:spark\.pydelta\.)?((?:s3|gcs|azure|storage)\.\w+)[`=]", page.read_text()))
    assert sorted(named - {option.name for option in OPTION_NAMES}) == []


@pytest.mark.parametrize("page", pages.PAGES, ids=name_of)
def test_condition_that_a_page_names_is_raised_by_the_code(page: Path) -> None:
    for condition in re.findall(r"\bDELTA_[A-Z_]+", page.read_text()):
        assert f'"{condition}' in CODE, f"{page.name} names {condition}"


@pytest.mark.parametrize("page", pages.PAGES, ids=name_of)
def test_exception_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`((?:Concurrent|Metadata|Protocol|Delta|Commit)\w*(?:Exception|Error))`", page.read_text())
    assert [name for name in named if not hasattr(exceptions, name) and not hasattr(as_deltalake.exceptions, name)] == []
