"""Models of packages from PyPI, in small sizes: for packages.py, which runs one with each framework.

    models.py torch|cairn NAME FOLDER OUT.npz       FOLDER keeps the weights that PyTorch began with
"""

import contextlib
import importlib
import io
import sys
from pathlib import Path

import numpy

WITH_TORCH = {"torchvision"}  # packages that Cairn has in itself
NEUTRAL = {"einops", "scipy", "packaging", "tqdm", "loguru", "frozendict"}  # packages that do not need PyTorch
CASES = {}


def case(*needs):
    """Registers a function; needs: its package, and those that it imports. The first line of its text says what it is."""
    def register(function):
        function.needs, function.what = needs, function.__doc__
        CASES[function.__name__] = function
        return function
    return register


class Trial:
    """Runs a model, and notes what came out."""

    def __init__(self, torch, folder, draws):
        self.torch, self.folder, self.draws = torch, Path(folder), draws
        self.random, self.values, self.models = numpy.random.RandomState(1), {}, 0

    def randn(self, *shape):
        return self.torch.from_numpy(self.random.standard_normal(shape).astype(numpy.float32))

    def rand(self, *shape):
        return self.torch.from_numpy(self.random.random_sample(shape).astype(numpy.float32))

    def ints(self, high, *shape):
        return self.torch.from_numpy(self.random.randint(0, high, shape))

    def same_weights(self, model):
        """PyTorch's weights are kept in a file; Cairn's become those."""
        path = self.folder / f"weights{self.models}.npz"
        self.models += 1
        if self.torch.__name__ == "torch":
            numpy.savez(path, **{k: v.detach().numpy() for k, v in model.state_dict().items()})
        else:
            with numpy.load(path) as saved:
                model.load_state_dict({k: self.torch.from_numpy(saved[k]) for k in saved.files})
        return model

    def note(self, name, value):
        """A tensor, or tensors in dicts, lists and objects: returns those that have a gradient."""
        if isinstance(value, self.torch.Tensor):
            self.values[name] = value.detach().numpy().copy()
            return [value] if value.requires_grad else []
        if isinstance(value, dict):
            value = value.items()
        elif isinstance(value, (list, tuple)):
            value = enumerate(value)
        elif hasattr(value, "__dataclass_fields__"):
            value = vars(value).items()
        else:
            return []
        return [x for key, part in value for x in self.note(f"{name}.{key}", part)]

    def backward(self, results, parameters):
        """Gradients of a weighted sum of the results."""
        loss = sum((y * self.torch.cos(self.torch.arange(y.numel()).reshape(y.shape).to(y.dtype))).sum()
                   for y in results)
        loss.backward()
        for name, p in parameters:
            if p.grad is not None:
                self.values["grad " + name] = p.grad.detach().numpy().copy()

    def run(self, model, *args, call=None, **kwargs):
        """Forward and backward, with the same weights on both sides."""
        self.same_weights(model)
        self.draws.random.seed(0)
        results = self.note(f"result {self.models}", (call or model)(*args, **kwargs))
        self.backward(results, model.named_parameters())

    def train(self, make, steps=6):
        """A few steps of an optimizer."""
        nn = self.torch.nn
        model = self.same_weights(nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2)))
        optimizer = make(model.parameters())
        x, y = self.randn(16, 6), self.randn(16, 2)
        if hasattr(optimizer, "train"):
            optimizer.train()
        for step in range(steps):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            self.note(f"loss {self.models} {step}", loss)
        self.note(f"weights {self.models}", dict(model.named_parameters()))


# ---- images ----


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def vit(t):
    """`ViT`"""
    from vit_pytorch import ViT
    t.run(ViT(image_size=32, patch_size=8, num_classes=10, dim=32, depth=2, heads=2, mlp_dim=64), t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def simple_vit(t):
    """`SimpleViT`"""
    from vit_pytorch import SimpleViT
    t.run(SimpleViT(image_size=32, patch_size=8, num_classes=10, dim=32, depth=2, heads=2, mlp_dim=64),
          t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def cait(t):
    """`CaiT`"""
    from vit_pytorch.cait import CaiT
    t.run(CaiT(image_size=32, patch_size=8, num_classes=10, dim=32, depth=2, cls_depth=1, heads=2, mlp_dim=64),
          t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def cct(t):
    """`CCT`"""
    from vit_pytorch.cct import CCT
    t.run(CCT(img_size=(32, 32), embedding_dim=32, n_conv_layers=2, kernel_size=7, stride=2, padding=3,
              pooling_kernel_size=3, pooling_stride=2, pooling_padding=1, num_layers=2, num_heads=2, mlp_ratio=3.0,
              num_classes=10, positional_embedding="learnable"), t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def cross_vit(t):
    """`CrossViT`"""
    from vit_pytorch.cross_vit import CrossViT
    t.run(CrossViT(image_size=32, num_classes=10, depth=2, sm_dim=16, sm_patch_size=4, sm_enc_depth=1, sm_enc_heads=2,
                   sm_enc_mlp_dim=32, lg_dim=24, lg_patch_size=8, lg_enc_depth=1, lg_enc_heads=2, lg_enc_mlp_dim=48,
                   cross_attn_depth=1, cross_attn_heads=2), t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def crossformer(t):
    """`CrossFormer`"""
    from vit_pytorch.crossformer import CrossFormer
    t.run(CrossFormer(num_classes=10, dim=(32, 32, 64, 64), depth=(1, 1, 1, 1), global_window_size=(4, 2, 1, 1),
                      local_window_size=2), t.randn(1, 3, 64, 64))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def cvt(t):
    """`CvT`"""
    from vit_pytorch.cvt import CvT
    t.run(CvT(num_classes=10, s1_emb_dim=8, s1_heads=1, s2_emb_dim=16, s2_heads=1, s2_depth=1, s3_emb_dim=16,
              s3_heads=2, s3_depth=1), t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def deepvit(t):
    """`DeepViT`"""
    from vit_pytorch.deepvit import DeepViT
    t.run(DeepViT(image_size=32, patch_size=8, num_classes=10, dim=32, depth=2, heads=4, mlp_dim=64),
          t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def levit(t):
    """`LeViT`"""
    from vit_pytorch.levit import LeViT
    t.run(LeViT(image_size=64, num_classes=10, stages=2, dim=(16, 24), depth=1, heads=(2, 3), mlp_mult=2),
          t.randn(2, 3, 64, 64))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def max_vit(t):
    """`MaxViT`"""
    from vit_pytorch.max_vit import MaxViT
    t.run(MaxViT(num_classes=10, dim_conv_stem=16, dim=16, dim_head=8, depth=(1, 1), window_size=4),
          t.randn(2, 3, 64, 64))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def mobile_vit(t):
    """`MobileViT`"""
    from vit_pytorch.mobile_vit import MobileViT
    t.run(MobileViT(image_size=(64, 64), dims=[16, 24, 32], channels=[8, 8, 16, 16, 24, 24, 32, 32, 40, 40, 64],
                    num_classes=10), t.randn(2, 3, 64, 64))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def nest(t):
    """`NesT`"""
    from vit_pytorch.nest import NesT
    t.run(NesT(image_size=32, patch_size=4, dim=8, heads=1, num_hierarchies=2, block_repeats=(1, 1), num_classes=10),
          t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def pit(t):
    """`PiT`"""
    from vit_pytorch.pit import PiT
    t.run(PiT(image_size=32, patch_size=4, dim=16, num_classes=10, depth=(1, 1), heads=2, mlp_dim=32),
          t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def regionvit(t):
    """`RegionViT`"""
    from vit_pytorch.regionvit import RegionViT
    t.run(RegionViT(dim=(8, 16, 16, 32), depth=(1, 1, 1, 1), window_size=2, num_classes=10), t.randn(2, 3, 64, 64))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def t2t(t):
    """`T2TViT`"""
    from vit_pytorch.t2t import T2TViT
    t.run(T2TViT(dim=32, image_size=32, depth=1, heads=2, mlp_dim=64, num_classes=10,
                 t2t_layers=((7, 4), (3, 2))), t.randn(2, 3, 32, 32))


@case("vit-pytorch", "einops", "torch-einops-utils", "torchvision")
def twins_svt(t):
    """`TwinsSVT`"""
    from vit_pytorch.twins_svt import TwinsSVT
    t.run(TwinsSVT(num_classes=10, s1_emb_dim=8, s1_local_patch_size=4, s1_global_k=4, s1_depth=1, s2_emb_dim=16,
                   s2_local_patch_size=4, s2_global_k=4, s2_depth=1, s3_emb_dim=16, s3_local_patch_size=2, s3_global_k=2,
                   s3_depth=1, s4_emb_dim=32, s4_local_patch_size=1, s4_global_k=1, s4_depth=1), t.randn(2, 3, 64, 64))


@case("mlp-mixer-pytorch", "einops")
def mlp_mixer(t):
    """`MLPMixer`"""
    from mlp_mixer_pytorch import MLPMixer
    t.run(MLPMixer(image_size=32, channels=3, patch_size=8, dim=32, depth=2, num_classes=10), t.randn(2, 3, 32, 32))


@case("res-mlp-pytorch", "einops")
def res_mlp(t):
    """`ResMLP`"""
    from res_mlp_pytorch import ResMLP
    t.run(ResMLP(image_size=32, patch_size=8, dim=32, depth=2, num_classes=10), t.randn(2, 3, 32, 32))


@case("efficientnet-pytorch")
def efficientnet(t):
    """`EfficientNet`, b0"""
    from efficientnet_pytorch import EfficientNet
    t.run(EfficientNet.from_name("efficientnet-b0", num_classes=10, drop_connect_rate=0.0), t.randn(2, 3, 64, 64))


@case("resnet-pytorch")
def resnet(t):
    """`ResNet`, 18 layers"""
    from resnet_pytorch import ResNet
    t.run(ResNet.from_name("resnet18", {"num_classes": 10}), t.randn(2, 3, 64, 64))


@case("lambda-networks", "einops")
def lambda_layer(t):
    """`LambdaLayer`, of the whole image and of neighbours"""
    from lambda_networks import LambdaLayer
    t.run(LambdaLayer(dim=16, dim_out=16, n=8, dim_k=8, heads=4, dim_u=1), t.randn(2, 16, 8, 8))
    t.run(LambdaLayer(dim=16, dim_out=16, r=5, dim_k=8, heads=4, dim_u=2), t.randn(2, 16, 8, 8))


@case("bottleneck-transformer-pytorch", "einops")
def bottleneck(t):
    """`BottleStack`"""
    from bottleneck_transformer_pytorch import BottleStack
    t.run(BottleStack(dim=16, fmap_size=8, dim_out=32, proj_factor=4, downsample=True, heads=2, dim_head=8,
                      rel_pos_emb=True, num_layers=2), t.randn(2, 16, 8, 8))


@case("halonet-pytorch", "einops")
def halo(t):
    """`HaloAttention`"""
    from halonet_pytorch import HaloAttention
    t.run(HaloAttention(dim=16, block_size=4, halo_size=2, dim_head=8, heads=2), t.randn(1, 16, 8, 8))


@case("axial-attention")
def axial(t):
    """`AxialImageTransformer`"""
    from axial_attention import AxialAttention, AxialPositionalEmbedding
    t.run(AxialAttention(dim=16, dim_index=1, heads=2, num_dimensions=2), t.randn(1, 16, 6, 7))
    t.run(AxialPositionalEmbedding(dim=16, shape=(6, 7), emb_dim_index=1), t.randn(1, 16, 6, 7))


axial.what = "`AxialAttention`, `AxialPositionalEmbedding`"


@case("hamburger-pytorch", "einops")
def hamburger(t):
    """`Hamburger` of NMF"""
    from hamburger_pytorch import Hamburger
    t.run(Hamburger(dim=16, n=8 * 8, ratio=4, K=3), t.rand(2, 16, 8, 8))


@case("pytorch-msssim")
def msssim(t):
    """`ssim`, `ms_ssim`"""
    from pytorch_msssim import MS_SSIM, SSIM
    x = t.torch.nn.Parameter(t.rand(1, 3, 180, 180))
    y = t.rand(1, 3, 180, 180)
    results = t.note("values", [SSIM(data_range=1.0, channel=3)(x, y), MS_SSIM(data_range=1.0, channel=3)(x, y)])
    t.backward(results, [("x", x)])


@case("siren-pytorch", "einops")
def siren(t):
    """`SirenNet`"""
    from siren_pytorch import SirenNet
    t.run(SirenNet(dim_in=2, dim_hidden=32, dim_out=3, num_layers=4, w0_initial=30.0), t.randn(10, 2))


# ---- sequences ----


@case("x-transformers", "einops", "torch-einops-utils", "packaging", "einx", "loguru", "frozendict")
def x_transformers(t):
    """`TransformerWrapper` of a `Decoder`"""
    from x_transformers import Decoder, TransformerWrapper
    t.run(TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2)),
          t.ints(50, 2, 16))


@case("performer-pytorch", "einops", "local-attention", "axial-positional-embedding", "hyper-connections")
def performer(t):
    """`PerformerLM`"""
    from performer_pytorch import PerformerLM
    t.run(PerformerLM(num_tokens=50, max_seq_len=32, dim=32, depth=2, heads=2, causal=False, dim_head=16),
          t.ints(50, 1, 32))


@case("linformer")
def linformer(t):
    """`LinformerLM`"""
    from linformer import LinformerLM
    t.run(LinformerLM(num_tokens=50, dim=32, seq_len=32, depth=2, heads=2, k=16), t.ints(50, 2, 32))


@case("reformer-pytorch", "einops", "local-attention", "axial-positional-embedding", "product-key-memory",
      "colt5-attention", "hyper-connections")
def reformer(t):
    """`ReformerLM` with full attention"""
    from reformer_pytorch import ReformerLM
    t.run(ReformerLM(num_tokens=50, dim=32, depth=2, max_seq_len=32, heads=2, bucket_size=8, causal=True,
                     use_full_attn=True), t.ints(50, 1, 32))


@case("perceiver-pytorch", "einops")
def perceiver(t):
    """`Perceiver`"""
    from perceiver_pytorch import Perceiver
    t.run(Perceiver(input_channels=3, input_axis=2, num_freq_bands=4, max_freq=10.0, depth=2, num_latents=8,
                    latent_dim=32, cross_heads=1, latent_heads=2, cross_dim_head=16, latent_dim_head=16,
                    num_classes=10), t.randn(2, 16, 16, 3))


@case("perceiver-pytorch", "einops")
def perceiver_io(t):
    """`PerceiverIO`"""
    from perceiver_pytorch import PerceiverIO
    t.run(PerceiverIO(dim=16, queries_dim=16, logits_dim=10, depth=1, num_latents=8, latent_dim=32, cross_heads=1,
                      latent_heads=2, cross_dim_head=16, latent_dim_head=16), t.randn(2, 20, 16),
          queries=t.randn(5, 16))


@case("nystrom-attention", "einops")
def nystrom(t):
    """`Nystromformer`"""
    from nystrom_attention import Nystromformer
    t.run(Nystromformer(dim=32, dim_head=16, heads=2, depth=1, num_landmarks=8, pinv_iterations=6), t.randn(2, 32, 32))


@case("local-attention", "einops", "hyper-connections")
def local_attention(t):
    """`LocalTransformer`"""
    from local_attention import LocalTransformer
    t.run(LocalTransformer(num_tokens=50, dim=32, depth=2, max_seq_len=32, causal=True, local_attn_window_size=8,
                           heads=2, dim_head=16), t.ints(50, 2, 32))


@case("g-mlp-pytorch", "einops")
def g_mlp(t):
    """`gMLP`"""
    from g_mlp_pytorch import gMLP
    t.run(gMLP(num_tokens=50, dim=32, depth=2, seq_len=32, causal=True, heads=1), t.ints(50, 2, 32))


@case("conformer", "einops")
def conformer(t):
    """`ConformerBlock`"""
    from conformer import ConformerBlock
    t.run(ConformerBlock(dim=32, dim_head=16, heads=2, conv_kernel_size=7), t.randn(2, 20, 32))


@case("memory-efficient-attention-pytorch", "einops")
def memory_efficient(t):
    """`Attention` in buckets"""
    from memory_efficient_attention_pytorch import Attention
    t.run(Attention(dim=32, dim_head=16, heads=2, causal=True, memory_efficient=True, q_bucket_size=8,
                    k_bucket_size=8), t.randn(1, 32, 32))


@case("rotary-embedding-torch", "einops")
def rotary(t):
    """`RotaryEmbedding`"""
    from rotary_embedding_torch import RotaryEmbedding
    x = t.torch.nn.Parameter(t.randn(2, 3, 10, 16))
    results = t.note("turned", RotaryEmbedding(dim=8).rotate_queries_or_keys(x))
    t.backward(results, [("x", x)])


@case("pytorch-tcn")
def tcn(t):
    """`TCN`"""
    from pytorch_tcn import TCN
    t.run(TCN(num_inputs=4, num_channels=[8, 8, 8], kernel_size=3, dropout=0.0), t.randn(2, 4, 30))


@case("mambapy")
def mamba(t):
    """`Mamba`, `pscan=False`"""
    from mambapy.mamba import Mamba, MambaConfig
    t.run(Mamba(MambaConfig(d_model=16, n_layers=2, pscan=False)), t.randn(2, 12, 16))


@case("mambapy")
def mamba_pscan(t):
    """`Mamba` with its parallel scan"""
    from mambapy.mamba import Mamba, MambaConfig
    t.run(Mamba(MambaConfig(d_model=16, n_layers=2)), t.randn(2, 12, 16))


@case("graph-transformer-pytorch", "einops", "rotary-embedding-torch")
def graph_transformer(t):
    """`GraphTransformer`"""
    from graph_transformer_pytorch import GraphTransformer
    t.run(GraphTransformer(dim=16, depth=2, edge_dim=8, with_feedforwards=True, gated_residual=True, rel_pos_emb=True),
          t.randn(1, 12, 16), t.randn(1, 12, 12, 8))


@case("egnn-pytorch", "einops")
def egnn(t):
    """`EGNN`"""
    from egnn_pytorch import EGNN
    t.run(EGNN(dim=16, edge_dim=4), t.randn(1, 8, 16), t.randn(1, 8, 3), t.randn(1, 8, 8, 4))


@case("product-key-memory", "einops", "colt5-attention", "local-attention", "hyper-connections")
def product_key_memory(t):
    """`PKM`"""
    from product_key_memory import PKM
    t.run(PKM(dim=16, heads=2, num_keys=8, topk=4, dim_head=8), t.randn(1, 12, 16))


# ---- solvers, flows, losses, metrics ----


@case("torchdiffeq", "scipy")
def odeint(t):
    """`odeint`: dopri5, rk4; `odeint_adjoint`"""
    import torchdiffeq
    nn = t.torch.nn
    net = t.same_weights(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)))
    start, times = t.randn(3, 2), t.torch.linspace(0, 1, 5)

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, time, y):
            return self.net(y ** 3)

    flow = Flow()
    results = t.note("values", [torchdiffeq.odeint(flow, start, times, method="dopri5"),
                                torchdiffeq.odeint(flow, start, times, method="rk4"),
                                torchdiffeq.odeint_adjoint(flow, start, times, method="dopri5")])
    t.backward(results, net.named_parameters())


@case("normflows", "tqdm")
def normflows(t):
    """`MaskedAffineFlow`, a flow"""
    import normflows as nf
    b = t.torch.tensor([1.0, 0.0, 1.0, 0.0])
    parts = [nf.flows.MaskedAffineFlow(b, nf.nets.MLP([4, 8, 4]), nf.nets.MLP([4, 8, 4])) for _ in range(2)]
    model = nf.NormalizingFlow(nf.distributions.DiagGaussian(4), parts)
    x = t.randn(6, 4)
    t.run(model, call=lambda: model.forward_kld(x))


@case("pytorch-metric-learning", "scipy", "tqdm")
def metric_learning(t):
    """`TripletMarginLoss`, `NTXentLoss`, `ArcFaceLoss`, `MultiSimilarityMiner`"""
    from pytorch_metric_learning import losses, miners
    x, labels = t.torch.nn.Parameter(t.randn(12, 8)), t.ints(3, 12)
    pairs = miners.MultiSimilarityMiner()(x, labels)
    arc = t.same_weights(losses.ArcFaceLoss(num_classes=3, embedding_size=8))
    values = [losses.TripletMarginLoss()(x, labels), losses.NTXentLoss()(x, labels), arc(x, labels),
              losses.MultiSimilarityLoss()(x, labels, pairs), losses.ContrastiveLoss()(x, labels)]
    t.backward(t.note("losses", values), [("x", x), *arc.named_parameters()])


@case("entmax")
def entmax(t):
    """`entmax15`, `sparsemax`, `entmax_bisect`"""
    from entmax import entmax15, entmax_bisect, sparsemax
    x = t.torch.nn.Parameter(t.randn(4, 10))
    t.backward(t.note("values", [entmax15(x, dim=-1), sparsemax(x, dim=-1), entmax_bisect(x, alpha=1.3)]), [("x", x)])


@case("torchsummary")
def torchsummary(t):
    """`summary` of a model"""
    from torchsummary import summary
    nn = t.torch.nn
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        summary(net, (3, 8, 8), device="cpu")
    t.values["text"] = numpy.array(text.getvalue().splitlines())


@case("torchinfo")
def torchinfo(t):
    """`summary` of a model"""
    import torchinfo
    nn = t.torch.nn
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    found = torchinfo.summary(net, (2, 3, 8, 8), verbose=0)
    t.values["counts"] = numpy.array([found.total_params, found.trainable_params, found.total_mult_adds])
    t.values["text"] = numpy.array(str(found).splitlines())


# ---- optimizers ----


@case("lion-pytorch")
def lion(t):
    """`Lion`"""
    from lion_pytorch import Lion
    t.train(lambda p: Lion(p, lr=1e-3, weight_decay=1e-2))


@case("madgrad")
def madgrad(t):
    """`MADGRAD`"""
    from madgrad import MADGRAD
    t.train(lambda p: MADGRAD(p, lr=1e-2))


@case("schedulefree")
def schedulefree(t):
    """`AdamWScheduleFree`"""
    from schedulefree import AdamWScheduleFree
    t.train(lambda p: AdamWScheduleFree(p, lr=1e-2))


@case("prodigyopt")
def prodigy(t):
    """`Prodigy`"""
    from prodigyopt import Prodigy
    t.train(lambda p: Prodigy(p))


@case("pytorch-ranger")
def ranger(t):
    """`Ranger`"""
    from pytorch_ranger import Ranger
    t.train(lambda p: Ranger(p, lr=1e-2))


@case("torch-optimizer", "pytorch-ranger")
def torch_optimizer(t):
    """`RAdam`, `Lamb`, `DiffGrad`, `AdaBound`, `Yogi`, `NovoGrad`"""
    import torch_optimizer
    for name in ("RAdam", "Lamb", "DiffGrad", "AdaBound", "Yogi", "NovoGrad"):
        t.train(lambda p: getattr(torch_optimizer, name)(p, lr=1e-2))


@case("ema-pytorch")
def ema(t):
    """`EMA`"""
    from ema_pytorch import EMA
    net = t.same_weights(t.torch.nn.Linear(4, 3))
    average = EMA(net, beta=0.9, update_after_step=0, update_every=1)
    for _ in range(4):
        with t.torch.no_grad():
            net.weight.add_(t.randn(3, 4))
        average.update()
    t.note("average", average(t.randn(2, 4)))


class NoTorch:
    """A package that still asks for PyTorch must not find it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch" or name.startswith(("torch.", "torchvision")):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


def main():
    framework, name, folder, out = sys.argv[1:]
    sys.path.pop(0)  # this folder, where cairn.py is another module
    if framework == "cairn":
        sys.meta_path.insert(0, NoTorch)
    torch = importlib.import_module(framework)
    for part in ("nn", "nn.functional", "utils.data"):
        importlib.import_module(f"{framework}.{part}")
    sys.path.append(str(Path(__file__).resolve().parent))
    import same_draws
    sys.path.pop()
    draws = same_draws.Draws(torch)
    draws.replace_functions()
    draws.replace_dropout()
    draws.replace_filling()
    trial = Trial(torch, folder, draws)
    CASES[name](trial)
    numpy.savez(out, **trial.values)


if __name__ == "__main__":
    main()
