"""Loads what Cairn saved into PyTorch, strictly, and compares what both make of the same inputs.

    build/tests/test_transfer && python tests/reference/check_transfer.py transfer_back.safetensors
    build/example_09_pytorch_checkpoint && python tests/reference/check_transfer.py build/letters.safetensors
    (needs: pip install torch safetensors; the first file is written where the test runs)

Ends with "N passed, M failed".
"""

import sys

import torch
from safetensors.torch import load_file

from make_transfer import cases, draw, outputs, segments_net


def part(file, prefix):
    return {name[len(prefix):]: t for name, t in file.items() if name.startswith(prefix)}


def differences(module, state, inputs, wanted):
    """In words, or nothing."""
    try:
        module.load_state_dict(state, strict=True)
    except RuntimeError as error:
        return str(error)
    got = outputs(module, inputs)
    if len(got) != len(wanted):
        return f"{len(got)} outputs, not {len(wanted)}"
    for i, (a, b) in enumerate(zip(got, wanted)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i} is {a.dtype} {tuple(a.shape)}, not {b.dtype} {tuple(b.shape)}"
        distance = (a - b).abs().max().item()
        if not distance <= 1e-5:
            return f"output {i} differs by {distance:g}"
    return ""


def letters_read(state):
    """The share of a seven-segment display's letters that the network reads: A b C d E F H L P U."""
    letters = ["abcefg", "cdefg", "adef", "bcdeg", "adefg", "aefg", "bcefg", "def", "abefg", "bcdef"]
    net = segments_net()
    net.load_state_dict(state, strict=True)
    said = outputs(net, [draw(letters * 100)])[0].argmax(1)
    return (said == torch.arange(10).repeat(100)).float().mean().item()


def main(path):
    file = load_file(path)
    if "0.weight" in file:  # what example 09 leaves
        share = letters_read(file)
        results = {"letters": "" if share > 0.9 else f"only {100 * share:.1f} % are read"}
    else:
        ordered = lambda t: [t[str(i)] for i in range(len(t))]
        results = {name: differences(module, part(file, f"{name}/state/"), ordered(part(file, f"{name}/in/")),
                                     ordered(part(file, f"{name}/out/")))
                   for name, (module, _) in cases().items()}
    for name, words in results.items():
        if words:
            print(f"{name}: {words}")
    failed = sum(bool(words) for words in results.values())
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
