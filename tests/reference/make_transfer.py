"""Writes state dicts as PyTorch users write them, with inputs and what PyTorch makes of them.

    python tests/reference/make_transfer.py        (needs: pip install torch safetensors)

transfer.safetensors, for tests/test_transfer.c: of each layer in cases() its state_dict as NAME/state/..., its inputs
as NAME/in/0, ... and its outputs in evaluation as NAME/out/0, ... The same layers in C: transfer.def.
transfer.pt: the same state dicts by torch.save, as {NAME: state_dict}.

examples/09_segments.safetensors, for examples/09_pytorch_checkpoint.c: a small network that learned here to read the
digits of a seven-segment display, as model..., with a batch as check.x and PyTorch's answer to it as check.logits.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

HERE = Path(__file__).resolve().parent


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 2), nn.GroupNorm(2, 6), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))


def cases():
    """NAME: (module, shapes of its inputs); a whole number instead of a shape: indices below it."""
    return {
        "linear": (nn.Linear(6, 4), [(3, 6)]),
        "linear_no_bias": (nn.Linear(6, 4, bias=False), [(2, 3, 6)]),
        "bilinear": (nn.Bilinear(4, 3, 5), [(6, 4), (6, 3)]),
        "embedding": (nn.Embedding(9, 4), [9]),
        "embedding_padding": (nn.Embedding(9, 4, padding_idx=0), [9]),
        "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), [(2, 4, 9)]),
        "conv2d": (nn.Conv2d(3, 4, (3, 2), padding=(1, 0), dilation=(1, 2)), [(2, 3, 6, 7)]),
        "conv3d": (nn.Conv3d(2, 3, 2), [(2, 2, 3, 4, 3)]),
        "conv_transpose1d": (nn.ConvTranspose1d(4, 2, 3, stride=2, output_padding=1), [(2, 4, 5)]),
        "conv_transpose2d": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), [(2, 4, 3, 4)]),
        "batch_norm1d": (nn.BatchNorm1d(5), [(4, 5)]),
        "batch_norm2d": (nn.BatchNorm2d(3), [(2, 3, 4, 4)]),
        "layer_norm": (nn.LayerNorm((4, 5)), [(3, 4, 5)]),
        "rms_norm": (nn.RMSNorm(8), [(3, 8)]),
        "group_norm": (nn.GroupNorm(3, 6), [(2, 6, 5)]),
        "instance_norm1d": (nn.InstanceNorm1d(3, affine=True), [(2, 3, 7)]),
        "instance_norm2d": (nn.InstanceNorm2d(3, affine=True, track_running_stats=True), [(2, 3, 4, 5)]),
        "prelu": (nn.PReLU(3), [(2, 3, 4)]),
        "rnn": (nn.RNN(4, 5), [(6, 2, 4), (1, 2, 5)]),
        "rnn_relu": (nn.RNN(4, 5, nonlinearity="relu", bias=False), [(6, 2, 4)]),
        "lstm": (nn.LSTM(4, 5, num_layers=2, bidirectional=True), [(6, 2, 4), (4, 2, 5), (4, 2, 5)]),
        "gru": (nn.GRU(4, 5, num_layers=2, batch_first=True), [(2, 6, 4), (2, 2, 5)]),
        "rnn_cell": (nn.RNNCell(4, 5), [(3, 4), (3, 5)]),
        "lstm_cell": (nn.LSTMCell(4, 5), [(3, 4), (3, 5), (3, 5)]),
        "gru_cell": (nn.GRUCell(4, 5), [(3, 4), (3, 5)]),
        "multihead_attention": (nn.MultiheadAttention(8, 2), [(3, 2, 8), (5, 2, 8), (5, 2, 8)]),
        "multihead_attention_widths": (nn.MultiheadAttention(8, 2, kdim=6, vdim=4, batch_first=True),
                                       [(2, 3, 8), (2, 5, 6), (2, 5, 4)]),
        "encoder_layer": (nn.TransformerEncoderLayer(8, 2, 16), [(5, 2, 8)]),
        "encoder_layer_gelu": (nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True,
                                                          norm_first=True), [(2, 5, 8)]),
        "decoder_layer": (nn.TransformerDecoderLayer(8, 2, 16), [(4, 2, 8), (5, 2, 8)]),
        "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, nn.LayerNorm(8),
                                          enable_nested_tensor=False), [(5, 2, 8)]),
        "transformer": (nn.Transformer(8, 2, 1, 2, 16), [(5, 2, 8), (4, 2, 8)]),
        "cnn": (cnn(), [(2, 1, 6, 6)]),
    }


def fill(module):
    """Every parameter and buffer random: initial values of 0 and 1 would hide mistakes."""
    for name, t in module.state_dict().items():
        if not t.is_floating_point():
            t.fill_(3)
        elif name.endswith("running_var"):
            t.copy_(torch.rand(t.shape) + 0.5)
        else:
            t.copy_(torch.randn(t.shape) * 0.5)


def outputs(module, inputs):
    """Flat lists in and out: PyTorch's LSTMs have their two states in a pair."""
    flat = lambda y: [y] if torch.is_tensor(y) else [t for part in y for t in flat(part)]
    if isinstance(module, (nn.LSTM, nn.LSTMCell)):
        inputs = [inputs[0], tuple(inputs[1:])]
    with torch.no_grad():
        return flat(module.eval()(*inputs))


def transfer():
    torch.manual_seed(1)
    tensors, states = {}, {}
    for name, (module, shapes) in cases().items():
        fill(module)
        inputs = [torch.randint(0, s, (2, 5)) if isinstance(s, int) else torch.randn(s) for s in shapes]
        states[name] = module.state_dict()
        for key, t in states[name].items():
            tensors[f"{name}/state/{key}"] = t
        for i, t in enumerate(inputs):
            tensors[f"{name}/in/{i}"] = t
        for i, t in enumerate(outputs(module, inputs)):
            tensors[f"{name}/out/{i}"] = t
    return {name: t.contiguous() for name, t in tensors.items()}, states


# ---- the network of example 09 ----

# Segments a to g: top, right above and below, bottom, left below and above, middle; as row, column, rows, columns.
BARS = [(1, 3, 1, 4), (2, 7, 3, 1), (6, 7, 3, 1), (9, 3, 1, 4), (6, 2, 3, 1), (2, 2, 3, 1), (5, 3, 1, 4)]
DIGITS = ["abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg"]


def draw(signs):
    """(n,1,12,12): each sign moved by up to a pixel, in noise."""
    images = torch.randn(len(signs), 1, 12, 12) * 0.3
    for image, sign in zip(images, signs):
        down, right = torch.randint(-1, 2, (2,)).tolist()
        for segment in sign:
            row, col, rows, cols = BARS["abcdefg".index(segment)]
            image[0, row + down : row + down + rows, col + right : col + right + cols] += 1
    return images


def segments_net():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(144, 10))


def segments():
    torch.manual_seed(2)
    net = segments_net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(400):
        y = torch.randint(0, 10, (64,))
        loss = nn.functional.cross_entropy(net(draw([DIGITS[i] for i in y])), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    x, y = draw(DIGITS * 2), torch.arange(10).repeat(2)
    with torch.no_grad():
        logits = net(x)
        print(f"example 09: loss {loss:.4f}, {(logits.argmax(1) == y).sum()} of 20 right")
    state = {f"model.{name}": t for name, t in net.state_dict().items()}
    return {**state, "check.x": x, "check.logits": logits}


if __name__ == "__main__":
    torch.set_num_threads(1)
    tensors, states = transfer()
    save_file(tensors, HERE / "transfer.safetensors")
    torch.save(states, HERE / "transfer.pt")
    save_file(segments(), HERE.parent.parent / "examples" / "09_segments.safetensors",
              metadata={"about": "digits of a seven-segment display, trained in PyTorch"})
