"""Find what is wrong with the documents without reading them.

Links that lead nowhere (files that are missing, headings that nobody wrote), and paths that exist on the machine of
whoever wrote them only.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
MACHINE_FOLDERS = ("/home/", "/root/", "/Users/")
"""Below these a path is one person's."""

_CODE = re.compile(r"^ *(```|~~~).*?^ *\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
_MACHINE_PATH = re.compile(rf"(?<![\w.~-])(?:{'|'.join(map(re.escape, MACHINE_FOLDERS))})\S*")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def documents() -> list[Path]:
    """List the Markdown files that are part of the repository or about to be."""
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).exists()]


def anchors(document: Path) -> set[str]:
    """Return the fragments that the headings of a document answer to, by the rules of Git hosting sites."""
    found: set[str] = set()
    for heading in _HEADING.findall(
        re.sub(r"^ *```.*?^ *```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    ):
        base = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        repeats = sum(1 for anchor in found if re.fullmatch(rf"{re.escape(base)}(-\d+)?", anchor))
        found.add(f"{base}-{repeats}" if repeats else base)
    return found


def broken_links(document: Path) -> Iterator[str]:
    """Name each link of a document whose file or heading does not exist; the web is not asked."""
    for link in _LINK.findall(_CODE.sub("", document.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, fragment = unquote(link).partition("#")
        target = (document.parent / name) if name else document
        if not target.exists():
            yield f"{document.relative_to(ROOT)}: {link}: no such file"
        elif fragment and target.suffix == ".md" and fragment not in anchors(target):
            yield f"{document.relative_to(ROOT)}: {link}: no such heading"


def machine_paths(document: Path) -> Iterator[str]:
    """Name each path in a document that exists on one machine only, with its line."""
    for number, line in enumerate(document.read_text().splitlines(), start=1):
        for path in _MACHINE_PATH.findall(line):
            yield f"{document.relative_to(ROOT)}:{number}: {path}: exists on one machine only; write ~ or a variable"


def main() -> None:
    """Print what is wrong; exit 1 if anything is."""
    checks = (broken_links, machine_paths)
    found = [problem for document in documents() for check in checks for problem in check(document)]
    for problem in found:
        print(problem)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
