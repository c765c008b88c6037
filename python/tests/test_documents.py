"""The programs in README.md and docs/onnx.md run as written."""

import re
from pathlib import Path

import cairn

README = Path(__file__).resolve().parents[2] / "README.md"
ONNX = README.parent / "docs" / "onnx.md"


def run_program(document, folder, monkeypatch, capsys):
    """Runs the only program of a document; returns the last line that it prints."""
    monkeypatch.chdir(folder)
    cairn.manual_seed(1)
    (program,) = re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), re.M | re.S)
    exec(compile(program, str(document), "exec"), {})
    return capsys.readouterr().out.splitlines()[-1]


def test_the_program_of_the_readme(tmp_path, monkeypatch, capsys):
    last = run_program(README, tmp_path, monkeypatch, capsys)
    assert re.fullmatch(r"step 1000  loss 0\.0\d+", last), last
    assert (tmp_path / "product.pt").exists()


def test_the_program_of_onnx(tmp_path, monkeypatch, capsys):
    last = run_program(ONNX, tmp_path, monkeypatch, capsys)
    assert re.fullmatch(r"loss 0\.0\d+", last), last
    assert cairn.onnx.load(tmp_path / "same.onnx").outputs[0].shape == ("rows", 5)
