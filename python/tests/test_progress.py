"""The progress bar and loss curves."""

import io
from xml.dom import minidom

import cairn
from cairn.utils.progress import Curve, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_counts_and_ends_with_a_line():
    out = Terminal()
    bar = progress(range(8), "epoch 1", file=out)
    seen = []
    for i in bar:
        seen.append(i)
        bar.note(f"loss {i}")
    text = out.getvalue()
    assert seen == list(range(8)) and len(bar) == 8
    assert "epoch 1" in text and text.endswith("\n") and "100 %" in text and "8/8" in text and "loss 7" in text


def test_nothing_is_written_where_nobody_looks():
    out = io.StringIO()
    assert list(progress((i for i in range(3)), file=out)) == [0, 1, 2] and out.getvalue() == ""


def test_a_loop_that_breaks_ends_the_line():
    out = Terminal()
    for _ in progress(range(100), file=out):
        break
    import gc
    gc.collect()
    assert out.getvalue().endswith("\n")


def test_curves_are_pictures(tmp_path):
    losses = Curve("loss & more")
    for i in range(20):
        losses.add(cairn.tensor(1.0 / (i + 1)))
        losses.add(float("nan") if i == 3 else 2.0 / (i + 1), name="test")
    losses.save(tmp_path / "loss.svg")
    lines = minidom.parse(str(tmp_path / "loss.svg")).getElementsByTagName("polyline")
    assert [len(line.getAttribute("points").split()) for line in lines] == [20, 19]
    assert "0.05" in repr(losses) and minidom.parseString(Curve().svg())
