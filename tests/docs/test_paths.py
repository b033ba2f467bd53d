"""The pages name files, functions, links and headings that exist, and their lines wrap at 100.

A path is a word with a slash and a file's ending, from the root, from src/ or from the page's own folder. A bare name
such as `window.h` is the name of some file. `FILE, `name()`` says that the file has this name in it.
"""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted(["README.md", "CONTRIBUTING.md", "lessons/README.md", "docs/results/README.md"] +
               [f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")])
ENDING = r"(?:c|h|cu|py|pyi|md|txt|json|csv|svg|html|toml|in|cmake|f90\.in)"
INVENTED = {"mine.cu", "sum.c"}  # a reader's own files
FOLDERS = "src|cli|docs|tests|bench|python|mpi|nccl|examples|lessons|scripts|include|packaging|ranks"
EVERY_CASE = True  # (tests/share.py)


def tracked():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        return set(done.stdout.split())
    return {str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()}


FILES = tracked()
NAMES = {path.rsplit("/", 1)[-1] for path in FILES}


def text_of(page):
    return (ROOT / page).read_text()


def without_code(text):
    return re.sub(r"(?ms)^```.*?^```$", "", text)


def candidates(page, path):
    """Where the path may lie."""
    here = pathlib.PurePosixPath(page).parent
    for base in (pathlib.PurePosixPath("."), here, pathlib.PurePosixPath("src")):
        parts = []
        for part in (base / path).parts:
            if part == "..":
                parts = parts[:-1]
            else:
                parts.append(part)
        yield "/".join(parts)


def exists(page, path):
    return any(place in FILES or (ROOT / place).exists() for place in candidates(page, path))


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page):
    text = without_code(text_of(page))
    paths = set(re.findall(rf"(?<![\w/.*<$-])(?:\.\./)*(?:{FOLDERS}|\w+)/[\w./-]*\w\.{ENDING}(?![\w/])", text))
    paths |= set(re.findall(rf"(?<![\w/.-])(?:{FOLDERS})/\w[\w/-]*\w(?![\w/.*<-])", text))
    bare = set(re.findall(r"`(\w[\w-]*\.(?:c|h|cu))`", text))
    wrong = sorted([path for path in paths - INVENTED if not exists(page, path)] + [name for name in bare - INVENTED if name not in NAMES])
    assert not wrong, f"{page} names what is not there: {wrong}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(page))):
        if re.match(r"\w+:", target):
            continue
        path, _, heading = target.partition("#")
        place = next((place for place in list(candidates(page, path))[1:2] if place in FILES or (ROOT / place).exists()), None)
        place = page if not path else place
        assert place, f"{page}: no {target}"
        if heading:
            anchors = {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                       for line in without_code(text_of(place)).splitlines() if re.match("#+ ", line)}
            assert heading in anchors, f"{page}: {place} has no heading {heading}"


@pytest.mark.parametrize("page", PAGES)
def test_files_have_the_functions_said_to_be_in_them(page):
    text = text_of(page)
    for path, names in re.findall(rf"([\w/.-]+\.{ENDING}), ((?:`\w+\(\)`(?:, | and )?)+)", text):
        places = [place for place in candidates(page, path) if place in FILES] or [
            file for file in FILES if file.endswith("/" + path)]
        assert places, f"{page}: no {path}"
        for name in re.findall(r"`(\w+)\(\)`", names):
            assert any(re.search(rf"\b{name}\b", (ROOT / place).read_text()) for place in places), f"{page}: {path} has no {name}()"


def test_lines_wrap_at_100():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "wrap", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
