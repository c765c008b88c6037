"""Writes layers.bin: what PyTorch's layers give, and their gradients, for tests/test_layers.c.

    python make_layers.py [--safetensors FILE]

layers.bin: a line "cairn layers 1", then for each case the line "case NAME MODE DTYPE WORDS", its tensors and the line
"end". A tensor is the line "tensor ROLE NAME DTYPE AXES SIZES...", its bytes (row-major, little-endian) and a newline.
Roles: state (the state_dict before), input, weights (random; the loss is sum(output * weights)), output, grad (of an
input or parameter), after (buffers after a forward in training).

Results are computed in f64 from inputs that f32 can hold, so that of f32 cases only the last rounding is PyTorch's.
With --safetensors the same tensors also go to FILE, as NAME/MODE/ROLE/NAME.
"""

import argparse
import json
import struct
from pathlib import Path

import torch
from torch import nn

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64"}
SAFE = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
BOTH = ("train", "eval")


class Case:
    def __init__(self, name, module, *shapes, modes=("train",), indices=0, kinks=False, dtype=None, native=False):
        self.name, self.module, self.shapes, self.modes = name, module, shapes, modes
        self.indices = indices  # above 0: the input is indices below it
        self.kinks = kinks      # the input has the places where activations bend
        self.dtype = dtype      # None: every other case is f64
        self.native = native    # computed in its own dtype, on which it depends


def activation(name, module, **options):
    return Case(name, module, (3, 8), kinks=True, **options)


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 2), nn.GroupNorm(2, 6), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))


def cases():
    return [
        Case("linear", nn.Linear(4, 3), (2, 5, 4)),
        Case("linear_no_bias", nn.Linear(4, 3, bias=False), (2, 4)),
        Case("bilinear", nn.Bilinear(4, 3, 5), (6, 4), (6, 3)),
        Case("bilinear_no_bias", nn.Bilinear(2, 3, 4, bias=False), (2, 3, 2), (2, 3, 3)),
        Case("embedding", nn.Embedding(7, 3), (2, 4), indices=7),
        Case("embedding_padding", nn.Embedding(7, 3, padding_idx=2), (3, 9), indices=7),
        Case("embedding_padding_last", nn.Embedding(5, 2, padding_idx=-1), (11,), indices=5),

        Case("conv1d", nn.Conv1d(3, 4, 3), (2, 3, 7)),
        Case("conv1d_options", nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2), (2, 4, 9)),
        Case("conv1d_same", nn.Conv1d(2, 3, 4, padding="same"), (2, 2, 6)),
        Case("conv1d_circular", nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular"), (2, 2, 5)),
        Case("conv2d", nn.Conv2d(3, 4, 3), (2, 3, 5, 6)),
        Case("conv2d_options", nn.Conv2d(4, 2, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2,
                                         bias=False), (2, 4, 5, 6)),
        Case("conv2d_depthwise", nn.Conv2d(3, 6, 3, padding=1, groups=3), (2, 3, 4, 5)),
        Case("conv2d_same", nn.Conv2d(2, 3, (2, 3), padding="same", dilation=(1, 2)), (2, 2, 4, 5)),
        Case("conv2d_reflect", nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="reflect"), (2, 2, 4, 5)),
        Case("conv2d_replicate", nn.Conv2d(2, 3, 3, padding=1, padding_mode="replicate"), (2, 2, 4, 5)),
        Case("conv2d_circular", nn.Conv2d(2, 3, 3, padding=1, stride=2, padding_mode="circular"), (2, 2, 4, 5)),
        Case("conv2d_same_reflect", nn.Conv2d(2, 2, 4, padding="same", padding_mode="reflect"), (2, 2, 5, 5)),
        Case("conv2d_one_image", nn.Conv2d(2, 3, 3, padding=1), (2, 4, 4)),
        Case("conv3d", nn.Conv3d(2, 3, 2), (2, 2, 3, 4, 3)),
        Case("conv3d_options", nn.Conv3d(2, 2, (2, 3, 1), stride=(1, 2, 1), padding=1), (1, 2, 3, 4, 3)),
        Case("conv_transpose1d", nn.ConvTranspose1d(3, 2, 3), (2, 3, 5)),
        Case("conv_transpose1d_options", nn.ConvTranspose1d(4, 2, 3, stride=3, padding=1, output_padding=2, groups=2),
             (2, 4, 4)),
        Case("conv_transpose2d", nn.ConvTranspose2d(3, 2, 3), (2, 3, 4, 3)),
        Case("conv_transpose2d_options", nn.ConvTranspose2d(4, 2, 3, stride=2, padding=(1, 0), output_padding=(1, 0),
                                                            groups=2, bias=False), (2, 4, 3, 3)),

        Case("max_pool1d", nn.MaxPool1d(3, stride=2, padding=1), (2, 3, 8)),
        Case("max_pool2d", nn.MaxPool2d(2), (2, 3, 4, 5)),
        Case("max_pool2d_options", nn.MaxPool2d((3, 2), stride=2, padding=(1, 0), dilation=(1, 2), ceil_mode=True),
             (2, 2, 6, 6)),
        Case("max_pool2d_kernels", nn.MaxPool2d((3, 2)), (2, 2, 6, 6)),
        Case("avg_pool1d", nn.AvgPool1d(3, stride=1, padding=1), (2, 3, 6)),
        Case("avg_pool2d", nn.AvgPool2d(2), (2, 3, 4, 5)),
        Case("avg_pool2d_options", nn.AvgPool2d(3, stride=(2, 1), padding=1, ceil_mode=True, count_include_pad=False),
             (2, 2, 5, 6)),
        Case("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(3), (2, 2, 7)),
        Case("adaptive_avg_pool2d", nn.AdaptiveAvgPool2d((2, 3)), (2, 2, 5, 7)),
        Case("adaptive_max_pool1d", nn.AdaptiveMaxPool1d(3), (2, 2, 7)),
        Case("adaptive_max_pool2d", nn.AdaptiveMaxPool2d((2, 3)), (2, 2, 5, 7)),
        Case("upsample_nearest", nn.Upsample(scale_factor=2), (2, 2, 3, 4)),
        Case("upsample_nearest1d", nn.Upsample(size=7), (2, 2, 3)),
        Case("upsample_nearest_size", nn.Upsample(size=(5, 2)), (2, 2, 3, 4)),
        Case("upsample_bilinear", nn.Upsample(scale_factor=2, mode="bilinear"), (2, 2, 3, 4)),
        Case("upsample_bilinear_aligned", nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True), (2, 2, 3, 4)),

        Case("batch_norm1d", nn.BatchNorm1d(3), (6, 3), modes=BOTH),
        Case("batch_norm1d_length", nn.BatchNorm1d(3, eps=1e-3, momentum=0.3), (3, 3, 4), modes=BOTH),
        Case("batch_norm2d", nn.BatchNorm2d(3), (2, 3, 3, 4), modes=BOTH),
        Case("batch_norm2d_cumulative", nn.BatchNorm2d(3, momentum=None), (2, 3, 3, 4), modes=BOTH),
        Case("batch_norm2d_not_affine", nn.BatchNorm2d(3, affine=False), (2, 3, 3, 4), modes=BOTH),
        Case("batch_norm2d_untracked", nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 3, 4), modes=BOTH),
        Case("batch_norm2d_no_eps", nn.BatchNorm2d(3, eps=0), (2, 3, 3, 4), modes=("eval",)),
        Case("batch_norm2d_no_momentum", nn.BatchNorm2d(3, momentum=0.0), (2, 3, 3, 4), modes=BOTH),
        Case("batch_norm3d", nn.BatchNorm3d(2), (2, 2, 2, 3, 2), modes=BOTH),
        Case("instance_norm1d", nn.InstanceNorm1d(3), (2, 3, 5)),
        Case("instance_norm2d", nn.InstanceNorm2d(3, affine=True, eps=1e-3), (2, 3, 3, 4)),
        Case("instance_norm2d_one_image", nn.InstanceNorm2d(3), (3, 3, 4)),
        Case("instance_norm1d_running", nn.InstanceNorm1d(3, affine=True, track_running_stats=True), (2, 3, 5),
             modes=BOTH),
        Case("instance_norm2d_running", nn.InstanceNorm2d(3, track_running_stats=True, momentum=0.4), (2, 3, 3, 4),
             modes=BOTH),
        Case("layer_norm", nn.LayerNorm(5), (2, 3, 5)),
        Case("layer_norm_two_axes", nn.LayerNorm((3, 4), eps=1e-2, bias=False), (2, 3, 4)),
        Case("layer_norm_not_affine", nn.LayerNorm(5, elementwise_affine=False), (2, 3, 5)),
        Case("rms_norm", nn.RMSNorm(5), (2, 3, 5), dtype=torch.float32, native=True),
        Case("rms_norm_f64", nn.RMSNorm(5), (2, 3, 5), dtype=torch.float64, native=True),
        Case("rms_norm_two_axes", nn.RMSNorm((3, 4), eps=1e-2, elementwise_affine=False), (2, 3, 4)),
        Case("group_norm", nn.GroupNorm(2, 6), (2, 6, 4)),
        Case("group_norm_not_affine", nn.GroupNorm(3, 6, affine=False, eps=1e-3), (2, 6, 2, 3)),

        activation("relu", nn.ReLU()),
        activation("relu6", nn.ReLU6()),
        activation("leaky_relu", nn.LeakyReLU()),
        activation("leaky_relu_slope", nn.LeakyReLU(0.2)),
        activation("prelu", nn.PReLU()),
        Case("prelu_channels", nn.PReLU(3), (2, 3, 8), kinks=True),
        activation("elu", nn.ELU()),
        activation("elu_alpha", nn.ELU(0.7)),
        activation("celu", nn.CELU(1.3)),
        activation("selu", nn.SELU()),
        activation("gelu", nn.GELU()),
        activation("gelu_tanh", nn.GELU(approximate="tanh")),
        activation("silu", nn.SiLU()),
        activation("mish", nn.Mish()),
        activation("sigmoid", nn.Sigmoid()),
        activation("log_sigmoid", nn.LogSigmoid()),
        activation("hardsigmoid", nn.Hardsigmoid()),
        activation("hardswish", nn.Hardswish()),
        activation("tanh", nn.Tanh()),
        activation("tanhshrink", nn.Tanhshrink()),
        activation("hardtanh", nn.Hardtanh()),
        activation("hardtanh_limits", nn.Hardtanh(-0.5, 3)),
        activation("softplus", nn.Softplus()),
        activation("softplus_options", nn.Softplus(2, 4)),
        activation("softsign", nn.Softsign()),
        activation("softshrink", nn.Softshrink()),
        activation("hardshrink", nn.Hardshrink()),
        activation("threshold", nn.Threshold(0.5, -2)),
        Case("glu", nn.GLU(), (3, 6)),
        Case("glu_axis", nn.GLU(1), (2, 4, 3)),
        Case("softmax", nn.Softmax(-1), (2, 3, 5)),
        Case("log_softmax", nn.LogSoftmax(1), (2, 5, 3)),

        Case("identity", nn.Identity(), (2, 3)),
        Case("flatten", nn.Flatten(), (2, 3, 2, 2)),
        Case("unflatten", nn.Unflatten(1, (2, 3)), (2, 6, 2)),
        Case("unflatten_open", nn.Unflatten(-1, (-1, 2)), (2, 6)),
        Case("pixel_shuffle", nn.PixelShuffle(2), (2, 8, 2, 3)),
        Case("zero_pad1d", nn.ZeroPad1d((1, 2)), (2, 2, 3)),
        Case("zero_pad2d", nn.ZeroPad2d((1, 2, 0, -1)), (2, 2, 3, 3)),
        Case("constant_pad2d", nn.ConstantPad2d((1, 0, 2, 1), 1.5), (2, 2, 3, 3)),
        Case("reflection_pad1d", nn.ReflectionPad1d((2, 1)), (2, 2, 4)),
        Case("reflection_pad2d", nn.ReflectionPad2d((1, 2, 2, 0)), (2, 2, 3, 3)),
        Case("replication_pad2d", nn.ReplicationPad2d((1, 2, 2, 0)), (2, 2, 3, 3)),
        Case("circular_pad2d", nn.CircularPad2d((1, 2, 2, 0)), (2, 2, 3, 3)),

        Case("dropout", nn.Dropout(0.5), (2, 3), modes=("eval",)),
        Case("dropout1d", nn.Dropout1d(0.5), (2, 3, 4), modes=("eval",)),
        Case("dropout2d", nn.Dropout2d(0.5), (2, 3, 2, 2), modes=("eval",)),
        Case("alpha_dropout", nn.AlphaDropout(0.5), (2, 3), modes=("eval",)),
        Case("cnn", cnn(), (2, 1, 6, 6), modes=BOTH),
    ]


def more_cases():
    """Made after the others have run: the random numbers of a case depend on those drawn before it."""
    return [
        Case("conv_transpose3d", nn.ConvTranspose3d(2, 3, 2), (2, 2, 2, 3, 2)),
        Case("conv_transpose3d_options", nn.ConvTranspose3d(4, 2, 3, stride=(2, 1, 3), padding=(1, 0, 1), groups=2,
                                                            output_padding=(1, 0, 2), bias=False), (1, 4, 2, 3, 2)),
        Case("max_pool3d", nn.MaxPool3d(2), (2, 2, 4, 5, 4)),
        Case("max_pool3d_options", nn.MaxPool3d((3, 2, 2), stride=2, padding=(1, 0, 1), dilation=(1, 2, 1),
                                                ceil_mode=True), (2, 5, 6, 4)),
        Case("avg_pool3d", nn.AvgPool3d(2), (2, 2, 4, 5, 4)),
        Case("avg_pool3d_options", nn.AvgPool3d(3, stride=(2, 1, 2), padding=1, ceil_mode=True,
                                                count_include_pad=False), (1, 2, 4, 4, 5)),
        Case("avg_pool3d_divisor", nn.AvgPool3d(2, divisor_override=3), (2, 2, 4, 3)),
        Case("avg_pool2d_divisor", nn.AvgPool2d(2, padding=1, divisor_override=5), (2, 2, 4, 3)),
        Case("adaptive_avg_pool3d", nn.AdaptiveAvgPool3d((2, 3, 1)), (2, 2, 3, 5, 4)),
        Case("adaptive_max_pool3d", nn.AdaptiveMaxPool3d((2, 3, 1)), (2, 2, 3, 5, 4)),
        Case("lp_pool1d", nn.LPPool1d(2, 3, stride=2), (2, 2, 8)),
        Case("lp_pool2d", nn.LPPool2d(2, (2, 3), ceil_mode=True), (2, 2, 5, 5)),
        Case("lp_pool3d", nn.LPPool3d(4, 2), (1, 2, 4, 4, 5)),
        Case("upsample_linear", nn.Upsample(size=7, mode="linear"), (2, 2, 4)),
        Case("upsample_linear_scale", nn.Upsample(scale_factor=1.7, mode="linear"), (2, 2, 4)),
        Case("upsample_bilinear_scale", nn.Upsample(scale_factor=1.7, mode="bilinear"), (1, 2, 4, 3)),
        Case("upsample_bilinear_recomputed", nn.Upsample(scale_factor=1.7, mode="bilinear",
                                                         recompute_scale_factor=True), (1, 2, 4, 3)),
        Case("upsample_bicubic", nn.Upsample(scale_factor=(2, 0.6), mode="bicubic"), (1, 2, 4, 5)),
        Case("upsample_bicubic_aligned", nn.Upsample(size=(6, 9), mode="bicubic", align_corners=True), (1, 2, 4, 5)),
        Case("upsample_trilinear", nn.Upsample(scale_factor=2, mode="trilinear"), (1, 2, 2, 3, 2)),
        Case("upsample_trilinear_aligned", nn.Upsample(size=(3, 2, 5), mode="trilinear", align_corners=True),
             (1, 2, 2, 3, 4)),
        Case("upsample_nearest3d", nn.Upsample(scale_factor=1.5), (1, 2, 2, 3, 4)),
        Case("instance_norm3d", nn.InstanceNorm3d(2, affine=True, track_running_stats=True), (2, 2, 2, 3, 2), modes=BOTH),
        Case("local_response_norm", nn.LocalResponseNorm(3, alpha=0.1, beta=0.6, k=2), (2, 5, 4)),
        Case("local_response_norm_planes", nn.LocalResponseNorm(2), (2, 4, 3, 2)),
        Case("softmin", nn.Softmin(1), (2, 5, 3)),
        Case("softmax2d", nn.Softmax2d(), (2, 3, 2, 2)),
        activation("rrelu", nn.RReLU(), modes=("eval",)),
        Case("pixel_unshuffle", nn.PixelUnshuffle(2), (2, 2, 4, 6)),
        Case("channel_shuffle", nn.ChannelShuffle(3), (2, 6, 2, 2)),
        Case("unfold", nn.Unfold((2, 3), dilation=(2, 1), padding=1, stride=(1, 2)), (2, 2, 4, 5)),
        Case("fold", nn.Fold((4, 5), (2, 3), dilation=(2, 1), padding=1, stride=(1, 2)), (2, 12, 12)),
        Case("cosine_similarity", nn.CosineSimilarity(), (3, 4, 2), (3, 4, 2)),
        Case("pairwise_distance", nn.PairwiseDistance(3, keepdim=True), (3, 4), (3, 4)),
        Case("zero_pad3d", nn.ZeroPad3d((1, 0, 2, 1, 0, 1)), (1, 2, 2, 3, 2)),
        Case("constant_pad1d", nn.ConstantPad1d((1, 2), -2), (2, 2, 3)),
        Case("constant_pad3d", nn.ConstantPad3d((1, 0, 0, 1, 1, 1), 0.5), (2, 2, 3, 2)),
        Case("reflection_pad3d", nn.ReflectionPad3d((1, 2, 1, 0, 1, 1)), (1, 2, 2, 2, 3)),
        Case("replication_pad1d", nn.ReplicationPad1d((2, 1)), (2, 2, 3)),
        Case("replication_pad3d", nn.ReplicationPad3d((1, 2, 1, 0, 0, 1)), (1, 2, 2, 2, 3)),
        Case("circular_pad3d", nn.CircularPad3d((1, 2, 1, 0, 0, 1)), (1, 2, 2, 2, 3)),
        Case("dropout3d", nn.Dropout3d(0.5), (2, 3, 2, 2, 2), modes=("eval",)),
        Case("feature_alpha_dropout", nn.FeatureAlphaDropout(0.5), (2, 3, 2), modes=("eval",)),
    ]


def all_cases():
    yield from cases()
    yield from more_cases()


def rounded(t):
    """Numbers that f32 can hold, in f64."""
    return t.float().double()


def fill(module):
    """Every parameter and buffer random: defaults of 0 and 1 would hide mistakes."""
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(rounded(torch.randn(p.shape) * 0.5))
        for name, b in module.named_buffers():
            if b.dtype == torch.int64:
                b.fill_(3)
            else:
                b.copy_(rounded(torch.rand(b.shape) + 0.5) if name.endswith("var") else rounded(torch.randn(b.shape)))


def make_input(case, shape, compute):
    if case.indices:
        return torch.randint(0, case.indices, shape)
    x = rounded(torch.randn(shape) * 1.5)
    if case.kinks:
        bends = torch.tensor([0, 0.5, -0.5, 1, -1, 3, -3, 6], dtype=torch.float64)
        x.view(-1)[: len(bends)] = bends
    return x.to(compute).requires_grad_()


def run(case, mode, dtype):
    """The tensors of one case: (role, name, tensor)."""
    compute = dtype if case.native else torch.float64
    module = case.module.to(compute)
    fill(module)
    module.train(mode == "train")
    stored = [("state", name, t.detach().clone()) for name, t in module.state_dict().items()]
    inputs = [make_input(case, shape, compute) for shape in case.shapes]
    stored += [("input", str(i), x.detach()) for i, x in enumerate(inputs)]
    module.zero_grad(set_to_none=True)
    output = module(*inputs)
    weights = rounded(torch.randn(output.shape)).to(compute)
    (output * weights).sum().backward()
    stored += [("weights", "-", weights), ("output", "-", output.detach())]
    stored += [("grad", str(i), x.grad) for i, x in enumerate(inputs) if x.requires_grad]
    stored += [("grad", name, p.grad) for name, p in module.named_parameters()]
    stored += [("after", name, b) for name, b in module.named_buffers()]
    stored = [(role, name, t.detach().clone()) for role, name, t in stored]
    return [(role, name, t.to(dtype) if t.is_floating_point() else t) for role, name, t in stored]


def data_of(t):
    return t.detach().contiguous().numpy().tobytes()


def write_case(file, case, mode, dtype, tensors):
    words = " ".join(str(case.module).split())
    file.write(f"case {case.name} {mode} {NAMES[dtype]} {words[:200]}\n".encode())
    for role, name, t in tensors:
        sizes = " ".join(str(n) for n in t.shape)
        file.write(f"tensor {role} {name} {NAMES[t.dtype]} {t.dim()} {sizes}".rstrip().encode() + b"\n")
        file.write(data_of(t) + b"\n")
    file.write(b"end\n")


def write_safetensors(path, everything):
    header, at = {}, 0
    for name, t in everything:
        n = t.numel() * t.element_size()
        header[name] = {"dtype": SAFE[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, t in everything:
            file.write(data_of(t))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--safetensors", metavar="FILE", help="the same tensors in this format too")
    arguments = parser.parse_args()
    torch.manual_seed(20)
    torch.set_num_threads(1)
    everything = []
    with open(Path(__file__).with_name("layers.bin"), "wb") as file:
        file.write(b"cairn layers 1\n")
        for i, case in enumerate(all_cases()):
            dtype = case.dtype or (torch.float64 if i % 2 else torch.float32)
            for mode in case.modes:
                tensors = run(case, mode, dtype)
                write_case(file, case, mode, dtype, tensors)
                everything += [(f"{case.name}/{mode}/{role}/{name}", t) for role, name, t in tensors]
    if arguments.safetensors:
        write_safetensors(arguments.safetensors, everything)


if __name__ == "__main__":
    main()
