"""The program in README.md runs as written."""

import re
from pathlib import Path

import cairn

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_program_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cairn.manual_seed(1)
    (program,) = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    exec(compile(program, str(README), "exec"), {})
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"step 1000  loss 0\.0\d+", last), last
    assert (tmp_path / "product.pt").exists()
