"""Checks docs/layout.md against the tree: its tables of files, its list of passes, its table of layers."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
LISTED = ["core", "plan", "cpu", "gpu", "grad"]  # folders of which every .c file has a line


def section(title):
    found = re.search(rf"^#+ {title}.*?$(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    return found.group(1) if found else ""


def wrong_files():
    for folder in LISTED:
        text = section(f"`src/{folder}/`")
        named = set(re.findall(r"`([\w./]+\.(?:c|h|def|wgsl))`", text))
        there = {path.name for path in (ROOT / "src" / folder).iterdir()}
        yield from (f"names src/{folder}/{name}, which does not exist" for name in sorted(named - there))
        missing = {name for name in there if name.endswith(".c")} - named
        yield from (f"does not name src/{folder}/{name}" for name in sorted(missing))
    families = {path.name for path in (ROOT / "src" / "ops").iterdir() if path.is_dir()}
    named = set(re.findall(r"^\| `(\w+)/`", section("`src/ops/`"), re.M))
    yield from (f"and src/ops differ on the family {name}" for name in sorted(families ^ named))
    for name in re.findall(r"`(test_\w+\.(?:c|py))`", PAGE):
        if not (ROOT / "tests" / name).exists():
            yield f"names tests/{name}, which does not exist"


def wrong_passes():
    source = (ROOT / "src" / "plan" / "passes.c").read_text(encoding="utf-8")
    run = re.findall(r'^    \{ "(\w+)", \w+ \}', source, re.M)
    told = re.findall(r"^\| \d+ \| `(\w+)` \|", section("`src/plan/`"), re.M)
    if run != told:
        yield f"lists the passes {told}, passes.c runs {run}"


def wrong_layers():
    source = (ROOT / "tools" / "check_includes.py").read_text(encoding="utf-8")
    checked = dict(re.findall(r'^    "([\w.]+)": "([\w. ]*)",', source.split("OFFERS")[0], re.M))
    told = {name: below.replace("`", "").strip()
            for name, below in re.findall(r"^\| `([\w.]+)` \|(.*)\|$", section("Who may refer"), re.M)}
    if checked != told:
        yield f"and tools/check_includes.py differ on layers: {sorted(set(checked.items()) ^ set(told.items()))}"


found = [f"docs/layout.md {problem}" for problem in [*wrong_files(), *wrong_passes(), *wrong_layers()]]
print("\n".join(found) if found else "docs/layout.md agrees with the tree")
sys.exit(1 if found else 0)
