"""Hook of mkdocs: the site has the layout of the repository, so the links of its pages hold in both.

In: the pages at the top of the repository, docs/, each file that one of them links to, and the style. Out: the files of the site.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
FIRST_PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
LAST_IN_SEARCH = ("benchmarks/", "tests/", "docs/design-notes", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")
_LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    own = Path(config.docs_dir)
    for file in list(files):
        if file.abs_src_path and Path(file.abs_src_path).is_relative_to(own):
            files.remove(file)
    for path in _published():
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **kwargs: object) -> None:
    """Searches name guides and references before measurements and pages for developers."""
    if page.file.src_uri.startswith(LAST_IN_SEARCH):
        page.meta["search"] = {"boost": 0.2}


def _published() -> list[Path]:
    """The pages, and what they link to, in the order of their paths."""
    waiting = [ROOT / name for name in FIRST_PAGES] + sorted((ROOT / "docs").rglob("*.md")) + [ROOT / "docs" / "site.css"]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.suffix == ".md":
            targets = (link for link in _LINK.findall(_without_code(path.read_text())) if ":" not in link)
            waiting += [target for link in targets if (target := (path.parent / link).resolve()).is_file()]
    return sorted(found)


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
