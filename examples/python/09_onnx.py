"""09: ONNX in, fine-tuning, ONNX out. A network that reads the ten digits of a seven-segment display arrives as an ONNX
file. Here it gets a new last layer and learns to read fourteen letters; then it is written as an ONNX file again.

The first file is made from the checkpoint of the C example 09. Afterwards the program knows nothing but that file.

Run it:  python3 examples/python/09_onnx.py [checkpoint]
"""

import sys
import tempfile
from pathlib import Path

import cairn
import cairn.nn.functional as F
from cairn import nn

LETTERS = ["abcefg", "cdefg", "adef", "bcdeg", "adefg", "aefg", "bcefg", "bcde", "def", "ceg", "cdeg", "abefg", "eg",
           "bcdef"]
BARS = {"a": (1, 3, 1, 4), "b": (2, 7, 3, 1), "c": (6, 7, 3, 1), "d": (9, 3, 1, 4), "e": (6, 2, 3, 1),
        "f": (2, 2, 3, 1), "g": (5, 3, 1, 4)}  # the segments: row, column, rows, columns


def write_digits(checkpoint: Path, path: Path) -> None:
    """Somebody's model, as an ONNX file."""
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(144, 10))
    state = {name[6:]: t for name, t in cairn.load(checkpoint).items() if name.startswith("model.")}
    net.load_state_dict(state)
    cairn.onnx.save(net, cairn.zeros(1, 1, 12, 12), path)


def draw(n: int) -> "tuple[cairn.Tensor, cairn.Tensor]":
    """The letters A b C d E F H J L n o P r U, shifted by up to a pixel, with noise: (n,1,12,12), (n)."""
    signs = cairn.zeros(len(LETTERS), 14, 14)
    for i, segments in enumerate(LETTERS):
        for segment in segments:
            row, column, rows, columns = BARS[segment]
            signs[i, row + 1 : row + 1 + rows, column + 1 : column + 1 + columns] = 1
    shifted = cairn.stack([signs[:, r : r + 12, c : c + 12] for r in range(3) for c in range(3)], dim=1)  # (14,9,12,12)
    y = cairn.randint(0, len(LETTERS), (n,))
    x = shifted[y, cairn.randint(0, 9, (n,))] + 0.4 * cairn.randn(n, 12, 12)
    return x.unsqueeze(1), y


@cairn.no_grad()
def accuracy(net: nn.Module, x: cairn.Tensor, y: cairn.Tensor) -> float:
    net.eval()
    right: float = (net(x).argmax(dim=1) == y).float().mean().item()
    return right


def train(net: nn.Module, lr: float, steps: int = 150) -> None:
    net.train()
    optimizer = cairn.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=lr)
    for step in range(steps):
        x, y = draw(50)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"  step {step + 1:3d}  loss {loss.item():.3f}")


def main() -> None:
    checkpoint = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/09_segments.safetensors")
    cairn.manual_seed(1)
    x, y = draw(1000)
    with tempfile.TemporaryDirectory() as scratch:
        write_digits(checkpoint, Path(scratch, "digits.onnx"))
        net = cairn.onnx.load(Path(scratch, "digits.onnx"))
        print(net)
        net.requires_grad_(False)
        setattr(net, "9", nn.Linear(144, len(LETTERS)))  # the weights of the graph's last layer are now these
        before = accuracy(net, x, y)
        print("the new layer alone")
        train(net, 1e-2)
        alone = accuracy(net, x, y)
        print("all layers")
        net.requires_grad_(True)
        train(net, 3e-3)
        after = accuracy(net, x, y)
        print(f"letters read: {100 * before:.1f} % with the new layer untrained, {100 * alone:.1f} % with it trained, "
              f"{100 * after:.1f} % with all layers trained")
        assert before < 0.25 and alone > 0.5 and after > alone

        path = Path(scratch, "letters.onnx")
        cairn.onnx.save(net, x[:1], path)
        assert accuracy(cairn.onnx.load(path), x, y) == after
        print(f"written, {path.stat().st_size} bytes, and loaded: it reads the same")


main()
