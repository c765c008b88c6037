"""Whole models, trained for some steps beside PyTorch: the same text runs with either library."""

import pytest

import cairn

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")


def residual(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        expansion = 1

        def __init__(self, inplanes, planes, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(planes)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(planes)
            self.downsample = None
            if stride != 1 or inplanes != planes:
                self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False),
                                                nn.BatchNorm2d(planes))

        def forward(self, x):
            identity = x
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            if self.downsample is not None:
                identity = self.downsample(x)
            out += identity
            return self.relu(out)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(8)
            self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
            self.layer1 = self._make_layer(8, 8, 1)
            self.layer2 = self._make_layer(8, 16, 2)
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(16, 5)
            for m in self.modules():
                if isinstance(m, nn.Conv2d):
                    nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                    nn.init.constant_(m.weight, 1)
                    nn.init.constant_(m.bias, 0)

        def _make_layer(self, inplanes, planes, stride):
            return nn.Sequential(Block(inplanes, planes, stride), Block(planes, planes))

        def forward(self, x):
            x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
            x = self.layer2(self.layer1(x))
            return self.fc(torch.flatten(self.avgpool(x), 1))

    def loss(model, x, y):
        return nn.CrossEntropyLoss(label_smoothing=0.1)(model(x), y)

    return Net(), loss, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)


def residual_data():
    return np.random.randn(6, 3, 32, 32).astype(np.float32), np.random.randint(0, 5, 6)


def gpt(torch):
    import math
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self, width, heads, context):
            super().__init__()
            self.c_attn = nn.Linear(width, 3 * width)
            self.c_proj = nn.Linear(width, width)
            self.heads, self.width = heads, width
            self.register_buffer("bias", torch.tril(torch.ones(context, context)).view(1, 1, context, context))

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(self.width, dim=2)
            k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
            return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))

    class Block(nn.Module):
        def __init__(self, width, heads, context):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attn = Attention(width, heads, context)
            self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(width, 4 * width), act=nn.GELU(approximate="tanh"),
                                          c_proj=nn.Linear(4 * width, width)))

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            m = self.mlp
            return x + m.c_proj(m.act(m.c_fc(self.ln_2(x))))

    class GPT(nn.Module):
        def __init__(self, vocabulary=11, width=16, heads=2, context=8, layers=2):
            super().__init__()
            self.transformer = nn.ModuleDict(dict(
                wte=nn.Embedding(vocabulary, width), wpe=nn.Embedding(context, width), drop=nn.Dropout(0.0),
                h=nn.ModuleList([Block(width, heads, context) for _ in range(layers)]), ln_f=nn.LayerNorm(width)))
            self.lm_head = nn.Linear(width, vocabulary, bias=False)
            self.transformer.wte.weight = self.lm_head.weight
            self.apply(self._init_weights)

        def _init_weights(self, module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

        def forward(self, idx, targets):
            b, t = idx.size()
            pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
            x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
            for block in self.transformer.h:
                x = block(x)
            logits = self.lm_head(self.transformer.ln_f(x))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    def optimizer(parameters):
        parameters = list(parameters)
        decay, rest = [p for p in parameters if p.dim() >= 2], [p for p in parameters if p.dim() < 2]
        return torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                 lr=1e-2, betas=(0.9, 0.95))

    return GPT(), lambda model, x, y: model(x, y), optimizer


def gpt_data():
    tokens = np.random.randint(0, 11, (4, 9))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def autoencoder(torch):
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True),
                                         nn.Conv2d(4, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2))
            self.mean, self.logvar = nn.Linear(128, 3), nn.Linear(128, 3)
            self.up = nn.Linear(3, 128)
            self.decoder = nn.Sequential(nn.Unflatten(1, (8, 4, 4)), nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False),
                                         nn.InstanceNorm2d(4, affine=True), nn.ReLU(True), nn.Upsample(scale_factor=2),
                                         nn.Conv2d(4, 1, 3, padding=1), nn.Sigmoid())

        def forward(self, x, noise):
            h = self.encoder(x).flatten(1)
            mean, logvar = self.mean(h), self.logvar(h)
            z = mean + noise * torch.exp(0.5 * logvar)
            return self.decoder(self.up(z)), mean, logvar

    def loss(model, x, noise):
        y, mean, logvar = model(x, noise)
        return F.binary_cross_entropy(y, x, reduction="sum") - 0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())

    return Net(), loss, lambda p: torch.optim.Adam(p, lr=1e-3)


def autoencoder_data():
    return np.random.rand(5, 1, 16, 16).astype(np.float32), np.random.randn(5, 3).astype(np.float32)


def tagger(torch):
    nn = torch.nn
    from_rnn = nn.utils.rnn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(9, 6, padding_idx=0)
            self.gru = nn.GRU(6, 8, num_layers=2, bidirectional=True, batch_first=True)
            self.out = nn.Linear(16, 3)

        def forward(self, x, lengths):
            packed = from_rnn.pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
            y, h = self.gru(packed)
            y, _ = from_rnn.pad_packed_sequence(y, batch_first=True)
            return self.out(y), h

    def loss(model, x, y):
        logits, h = model(x, (x != 0).sum(1).to("cpu"))
        return nn.functional.cross_entropy(logits.transpose(1, 2), y, ignore_index=-100) + h.pow(2).mean()

    return Net(), loss, lambda p: torch.optim.RMSprop(p, lr=1e-3)


def tagger_data():
    lengths, x, y = [4, 6, 2], np.zeros((3, 6), np.int64), np.full((3, 6), -100)
    for i, n in enumerate(lengths):
        x[i, :n], y[i, :n] = np.random.randint(1, 9, n), np.random.randint(0, 3, n)
    return x, y


def translator(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(9, 8)
            self.transformer = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True, norm_first=True)
            self.out = nn.Linear(8, 9)

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(target.size(1))
            y = self.transformer(self.embedding(source), self.embedding(target), tgt_mask=mask, tgt_is_causal=True,
                                 src_key_padding_mask=source == 0, memory_key_padding_mask=source == 0)
            return self.out(y)

    def loss(model, source, target):
        return nn.NLLLoss()(model(source, target[:, :-1]).log_softmax(-1).flatten(0, 1), target[:, 1:].flatten())

    return Net(), loss, lambda p: torch.optim.Adam(p, 1e-3, betas=(0.9, 0.98))


def translator_data():
    source = np.random.randint(1, 9, (3, 5))
    source[1, 3:] = 0
    return source, np.random.randint(1, 9, (3, 6))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model, data", [(residual, residual_data), (gpt, gpt_data), (autoencoder, autoencoder_data),
                                         (tagger, tagger_data), (translator, translator_data)])
def test_training_is_that_of_pytorch(model, data):
    np.random.seed(0)
    batch = data()
    (ours, our_loss, our_optimizer), (theirs, their_loss, their_optimizer) = model(cairn), model(torch)
    assert repr(ours) == repr(theirs)
    state = theirs.state_dict()
    ours.load_state_dict({k: cairn.tensor(v.numpy()) for k, v in state.items()})
    losses = []
    for library, net, loss, make in ((cairn, ours, our_loss, our_optimizer),
                                     (torch, theirs, their_loss, their_optimizer)):
        tensors, optimizer, seen = [library.tensor(v) for v in batch], make(net.parameters()), []
        for _ in range(6):
            optimizer.zero_grad()
            value = loss(net, *tensors)
            value.backward()
            library.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
            seen.append(value.item())
        net.eval()
        with library.no_grad():
            seen.append(loss(net, *tensors).item())
        losses.append(seen)
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-3)
    for (name, a), b in zip(ours.state_dict().items(), theirs.state_dict().values()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-2, atol=2e-3, err_msg=name)
