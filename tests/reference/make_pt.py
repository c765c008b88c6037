"""Writes files of torch.save for tests/test_pt.c, below tests/reference/pt/.

    python tests/reference/make_pt.py        (needs: pip install torch)

Element i of a tensor has the value i % 5 - 2, as its dtype stores it: what each file holds is in test_pt.c.
"""

import zipfile
from collections import OrderedDict
from pathlib import Path

import torch
from torch import nn

OUT = Path(__file__).resolve().parent / "pt"
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.float64]


def values(*shape, dtype=torch.float32):
    n = torch.Size(shape).numel()
    return (torch.arange(n) % 5 - 2).to(dtype).reshape(shape)


def dtypes():
    return {str(t).removeprefix("torch."): values(2, 3, dtype=t) for t in DTYPES}


def views():
    base, tied = values(4, 6), values(3)
    return OrderedDict(
        base=base, transposed=base.t(), part=base[1:3, 2:5], column=base[:, 1], steps=base[::2, ::3],
        number=base[2, 3], none=base[4:], empty=torch.zeros(0, 3), expanded=tied.expand(2, 3), tied=tied, again=tied,
        other=tied.view(3, 1), single=torch.tensor(2.5), permuted=values(2, 3, 4).permute(2, 0, 1),
        parameter=nn.Parameter(values(2)))


def checkpoint():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(values(*p.shape))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(values(4, 2)).sum().backward()
    optimizer.step()
    return {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": 0.25,
            "far": -(2**40), "note": "größe 🙂", "resumed": True, "nothing": None, 7: [1, (2.5, "x"), [], {}],
            "weights": [values(2), values(3)]}


def names_of(path, wanted):
    with zipfile.ZipFile(path) as file:
        return [(i.filename, file.read(i)) for i in file.infolist() if wanted(i.filename)]


def main():
    OUT.mkdir(exist_ok=True)
    torch.save(dtypes(), OUT / "dtypes.pt")
    torch.save(views(), OUT / "views.pt")
    torch.save(checkpoint(), OUT / "checkpoint.pt")
    torch.save({"a": values(2), "b": [values(3)]}, OUT / "protocol4.pt", pickle_protocol=4)
    torch.save(values(2, 2), OUT / "tensor.pt")
    torch.save({"a": values(2)}, OUT / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"a": torch.zeros(1, dtype=torch.complex64)}, OUT / "complex.pt")
    torch.save(nn.ReLU(), OUT / "module.pt")
    with zipfile.ZipFile(OUT / "deflated.pt", "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in names_of(OUT / "protocol4.pt", lambda name: "/." not in name):
            file.writestr(name, data)
    torch.serialization.set_crc32_options(False)
    torch.save({"a": values(2)}, OUT / "no_checksum.pt")


if __name__ == "__main__":
    main()
