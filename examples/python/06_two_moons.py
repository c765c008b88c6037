"""06: modules. The two half moons of 03 again, now with layers, an optimizer, a loader of batches, and a test on points
that the network has never seen.

Run it:  python3 examples/python/06_two_moons.py [epochs]
"""

import math
import sys

import cairn
import cairn.nn.functional as F
from cairn import nn, optim
from cairn.utils.data import DataLoader, TensorDataset


def moons(n: int) -> TensorDataset:
    """Places (n,2), and the moon of each place (n): 0 or 1."""
    t = math.pi * cairn.rand(n)
    moon = cairn.arange(n) % 2
    x = cairn.where(moon == 1, 1 - t.cos(), t.cos())
    y = cairn.where(moon == 1, 0.5 - t.sin(), t.sin())
    return TensorDataset(cairn.stack([x, y], dim=1) + 0.15 * cairn.randn(n, 2), moon)


class Net(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Linear(2, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 2)

    def forward(self, x: cairn.Tensor) -> cairn.Tensor:  # (n,2) -> (n,2)
        x = F.relu(self.first(x))
        x = F.relu(self.second(x))
        scores: cairn.Tensor = self.last(x)
        return scores


@cairn.no_grad()
def accuracy(net: Net, data: TensorDataset) -> float:
    x, y = data.tensors
    return float((net(x).argmax(dim=1) == y).float().mean().item())


epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
cairn.manual_seed(1)
train, test = moons(512), moons(256)
net = Net()
print(net)
before = accuracy(net, test)
optimizer = optim.AdamW(net.parameters(), lr=1e-2)
for epoch in range(epochs):
    total = 0.0
    for x, y in DataLoader(train, batch_size=64, shuffle=True):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1:3d}  loss {total / len(train):.4f}")
after = accuracy(net, test)
print(f"Of {len(test)} new points {100 * after:.1f} % are right; before training {100 * before:.1f} %.")
assert epochs < 20 or (after > 0.97 and after > before)
