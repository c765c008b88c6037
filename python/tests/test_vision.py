"""Datasets of images on files, transforms, grids."""

import gzip
import struct
import zlib

import numpy as np
import pytest

import cairn
from cairn.utils.data import DataLoader
from cairn.vision import datasets, transforms, utils
from cairn.vision.io import read_image
from cairn.vision.transforms import functional as F


RESIZED = [("nearest", 299976499, 3615244382),
           ("bilinear", 3413869898, 337038387),
           ("bicubic", 1243599186, 642737680),
           ("lanczos", 1576258918, 1459703759),
           ("box", 3771005867, 3615244382),
           ("hamming", 2834538775, 353444617)]


def image(seed=0, channels=3, height=7, width=9, dtype=np.uint8):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (channels, height, width)).astype(np.uint8)
    return cairn.tensor(x) if dtype is np.uint8 else cairn.tensor(x / np.float32(255))


def write_mnist(folder, n=20, kind="train", compress=True):
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 256, (n, 28, 28)).astype(np.uint8), rng.integers(0, 10, n).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for name, head, data in (("images-idx3", struct.pack(">4i", 2051, n, 28, 28), x),
                             ("labels-idx1", struct.pack(">2i", 2049, n), y)):
        raw = head + data.tobytes()
        path = folder / f"{kind}-{name}-ubyte{'.gz' if compress else ''}"
        path.write_bytes(gzip.compress(raw) if compress else raw)
    return x, y


# ---- datasets ----


@pytest.mark.parametrize("compress", [True, False])
def test_mnist(tmp_path, compress):
    x, y = write_mnist(tmp_path / "MNIST" / "raw", compress=compress)
    data = datasets.MNIST(str(tmp_path), train=True, transform=transforms.ToTensor())
    assert len(data) == 20 and data.classes[3] == "3 - three"
    img, label = data[4]
    assert img.shape == (1, 28, 28) and img.dtype == cairn.float32 and label == int(y[4]) and type(label) is int
    np.testing.assert_allclose(img.numpy()[0], x[4] / 255, rtol=1e-6)
    assert data.data.shape == (20, 28, 28) and data.targets.tolist() == y.tolist()
    with pytest.raises(FileNotFoundError, match="t10k-images"):
        datasets.MNIST(tmp_path, train=False)
    with pytest.raises(NotImplementedError, match="FashionMNIST"):
        datasets.FashionMNIST(str(tmp_path), download=True)


def test_batches_at_once_are_batches_of_items(tmp_path):
    write_mnist(tmp_path)

    class Slow(datasets.MNIST):
        def __getitem__(self, index):
            return super().__getitem__(index)

    steps = transforms.Compose([transforms.ToTensor(), transforms.Resize(14), transforms.Normalize((0.13,), (0.3,))])
    fast = list(DataLoader(datasets.MNIST(str(tmp_path), transform=steps), 8))
    slow = list(DataLoader(Slow(str(tmp_path), transform=steps), 8))
    for (a, b), (c, d) in zip(fast, slow):
        assert a.shape == c.shape and b.tolist() == d.tolist() and b.dtype == d.dtype
        np.testing.assert_allclose(a.numpy(), c.numpy(), atol=1e-6)


def test_random_steps_at_once(tmp_path):
    x, _ = write_mnist(tmp_path, 200)
    steps = transforms.Compose([transforms.RandomCrop(28, padding=2), transforms.RandomHorizontalFlip(),
                                transforms.ToTensor()])
    cairn.manual_seed(0)
    (out, _), = list(DataLoader(datasets.MNIST(str(tmp_path), transform=steps), 200))
    padded = np.pad(x, ((0, 0), (2, 2), (2, 2)))
    places = set()
    for i in range(200):
        got = out[i, 0].numpy()
        found = [(t, left, turn) for t in range(5) for left in range(5) for turn in (1, -1)
                 if np.allclose((padded[i, t : t + 28, left : left + 28][:, ::turn]) / 255, got)]
        assert len(found) == 1
        places.add(found[0])
    assert len(places) > 30


def test_cifar10(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    labels, pixels = rng.integers(0, 10, 6).astype(np.uint8), rng.integers(0, 256, (6, 3, 32, 32)).astype(np.uint8)
    raw = b"".join(bytes([label]) + p.tobytes() for label, p in zip(labels, pixels))
    (folder / "test_batch.bin").write_bytes(raw)
    data = datasets.CIFAR10(str(tmp_path), train=False)
    img, label = data[5]
    assert img.dtype == cairn.uint8 and label == labels[5]
    np.testing.assert_array_equal(img.numpy(), pixels[5])
    (folder / "test_batch.bin").write_bytes(raw[:-1])
    with pytest.raises(ValueError, match="3073"):
        datasets.CIFAR10(str(tmp_path), train=False)
    with pytest.raises(NotImplementedError, match="download"):
        datasets.CIFAR10(str(tmp_path), download=True)


def test_image_folder(tmp_path):
    for name in ("cat", "dog"):
        for i in range(2):
            (tmp_path / name).mkdir(exist_ok=True)
            utils.save_image(image(i, dtype=np.float32), tmp_path / name / f"{i}.ppm")
    (tmp_path / "cat" / "note.txt").write_text("no image")
    data = datasets.ImageFolder(str(tmp_path), transform=transforms.ToTensor())
    assert data.classes == ["cat", "dog"] and data.targets == [0, 0, 1, 1] and data.class_to_idx["dog"] == 1
    np.testing.assert_array_equal((data[1][0] * 255).round().numpy(), image(1).numpy())
    x, y = next(iter(DataLoader(data, 4, num_workers=2)))
    assert x.shape == (4, 3, 7, 9) and y.tolist() == [0, 0, 1, 1]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty"):
        datasets.ImageFolder(str(tmp_path))


def test_fake_data():
    data = datasets.FakeData(5, (3, 4, 4), 3, transform=transforms.ToTensor())
    assert len(data) == 5 and data[2][0].tolist() == data[2][0].tolist() and data[2][0].tolist() != data[3][0].tolist()
    assert all(0 <= data[i][1] < 3 for i in range(5))


# ---- transforms ----


def test_values():
    x = image()
    np.testing.assert_allclose(transforms.ToTensor()(x).numpy(), x.numpy() / np.float32(255), rtol=1e-6)
    array = np.transpose(x.numpy(), (1, 2, 0))
    np.testing.assert_allclose(transforms.ToTensor()(array).numpy(), x.numpy() / np.float32(255), rtol=1e-6)
    y = transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))(F.to_tensor(x)).numpy()
    np.testing.assert_allclose(y[1], (x.numpy()[1] / 255 - 0.4) / 0.3, rtol=1e-4, atol=1e-6)
    gray = transforms.Grayscale()(F.to_tensor(x)).numpy()
    np.testing.assert_allclose(gray[0], np.tensordot([0.2989, 0.587, 0.114], x.numpy() / 255, 1), rtol=1e-5)
    assert transforms.Grayscale(3)(x).shape == (3, 7, 9)
    assert transforms.ConvertImageDtype(cairn.uint8)(F.to_tensor(x)).tolist() == x.tolist()
    with pytest.raises(ValueError, match="zero"):
        transforms.Normalize((0.5,), (0.0,))(F.to_tensor(x))
    with pytest.raises(TypeError):
        transforms.Normalize((0.5,), (0.1,))(x)


def test_places():
    x = image(height=8, width=10)
    n = x.numpy()
    np.testing.assert_array_equal(transforms.CenterCrop((4, 6))(x).numpy(), n[:, 2:6, 2:8])
    np.testing.assert_array_equal(transforms.CenterCrop(12)(x).numpy(), np.pad(n, ((0, 0), (2, 2), (1, 1))))
    np.testing.assert_array_equal(F.crop(x, -1, 7, 4, 5).numpy(), np.pad(n, ((0, 0), (1, 0), (0, 2)))[:, :4, 7:12])
    np.testing.assert_array_equal(F.hflip(x).numpy(), n[:, :, ::-1])
    np.testing.assert_array_equal(transforms.Pad((1, 2))(x).numpy(), np.pad(n, ((0, 0), (2, 2), (1, 1))))
    np.testing.assert_array_equal(transforms.Pad(2, padding_mode="reflect")(x).numpy(),
                                  np.pad(n, ((0, 0), (2, 2), (2, 2)), mode="reflect"))
    assert transforms.Resize(4)(x).shape == (3, 4, 5) and transforms.Resize((5, 3))(x).dtype == cairn.uint8
    assert all(c.shape == (3, 4, 4) for c in transforms.FiveCrop(4)(x))
    square = image(height=6, width=6)
    for quarter in range(4):
        want = np.rot90(square.numpy(), quarter, (1, 2))
        np.testing.assert_array_equal(F.rotate(square, 90.0 * quarter).numpy(), want)
    assert F.rotate(x, 90, expand=True).shape == (3, 10, 8)
    assert F.rotate(x, 45, fill=7)[0, 0, 0].item() == 7


def test_resize_of_bytes_is_that_of_pillow():
    x = image(height=37, width=41)  # checksums of what Pillow 13 makes of it
    for mode, small, large in RESIZED:
        for size, want in (((20, 30), small), ((50, 60), large)):
            got = transforms.Resize(size, interpolation=mode)(x)
            assert got.dtype == cairn.uint8 and zlib.crc32(got.numpy().tobytes()) == want, (mode, size)
    batch = cairn.stack([x, x.flip(-1)])
    assert (F.resize(batch, [20, 30])[1] == F.resize(x.flip(-1), [20, 30])).all()
    assert (F.resized_crop(x, 3, 4, 20, 30, (9, 8)) == F.resize(x[:, 3:23, 4:34], [9, 8])).all()
    with pytest.raises(ValueError, match="lanczos"):
        F.resize(x.float(), [5, 5], transforms.InterpolationMode.LANCZOS)
    with pytest.raises(ValueError, match="area"):
        F.resize(x, [5, 5], "area")


def test_resize_beside_pillow():
    Image = pytest.importorskip("PIL.Image")
    if int(pytest.importorskip("PIL").__version__.partition(".")[0]) < 13:
        pytest.skip("older versions do the two directions in another order")
    rng = np.random.default_rng(2)
    for _ in range(30):
        h, w, to_h, to_w = (int(n) for n in rng.integers(1, 60, 4))
        x = rng.integers(0, 256, (h, w, 3)).astype(np.uint8)
        for mode in transforms.InterpolationMode.BILINEAR, transforms.InterpolationMode.BICUBIC, "nearest", "lanczos":
            want = np.asarray(Image.fromarray(x).resize((to_w, to_h), getattr(Image, mode.upper())))
            got = F.resize(cairn.tensor(x.transpose(2, 0, 1)), [to_h, to_w], mode)
            np.testing.assert_array_equal(got.numpy(), want.transpose(2, 0, 1))


def test_resize_as_pytorch():
    torch = pytest.importorskip("torch")
    x = image(height=17, width=23, dtype=np.float32)
    for size in ((5, 7), (30, 40), (9, 50)):
        want = torch.nn.functional.interpolate(torch.tensor(x.numpy())[None], size=size, mode="bilinear",
                                               antialias=True)[0]
        np.testing.assert_allclose(F.resize(x, list(size)).numpy(), want.numpy(), atol=1e-5)


def test_colours():
    import colorsys

    x = image(dtype=np.float32)
    n = x.numpy()
    np.testing.assert_allclose(F.adjust_brightness(x, 1.5).numpy(), np.clip(n * 1.5, 0, 1), atol=1e-6)
    gray = np.tensordot(np.float32([0.2989, 0.587, 0.114]), n, 1)
    np.testing.assert_allclose(F.adjust_contrast(x, 0.5).numpy(), n * 0.5 + gray.mean() * 0.5, atol=1e-5)
    np.testing.assert_allclose(F.adjust_saturation(x, 0.0).numpy(), np.stack([gray] * 3), atol=1e-5)
    turned = F.adjust_hue(x, 0.2).numpy()
    for i, j in ((0, 0), (3, 4), (6, 8)):
        h, s, v = colorsys.rgb_to_hsv(*n[:, i, j].astype(float))
        np.testing.assert_allclose(turned[:, i, j], colorsys.hsv_to_rgb((h + 0.2) % 1, s, v), atol=1e-5)
    np.testing.assert_allclose(F.adjust_hue(x, 0.0).numpy(), n, atol=1e-5)
    assert F.adjust_brightness(image(), 2.0).dtype == cairn.uint8
    with pytest.raises(ValueError):
        transforms.ColorJitter(hue=0.7)


def test_random_transforms():
    x = image(dtype=np.float32, height=12, width=12)
    every = [transforms.RandomCrop(8), transforms.RandomResizedCrop(6), transforms.RandomRotation(30),
             transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.RandomGrayscale(0.5), transforms.RandomErasing(1.0),
             transforms.GaussianBlur(3), transforms.RandomApply([transforms.RandomInvert(1.0)], 0.5),
             transforms.RandomChoice([transforms.RandomHorizontalFlip(1.0), transforms.RandomVerticalFlip(1.0)]),
             transforms.RandomOrder([transforms.Pad(1), transforms.RandomHorizontalFlip()])]
    for t in every:
        cairn.manual_seed(4)
        first = [t(x).tolist() for _ in range(6)]
        cairn.manual_seed(4)
        assert [t(x).tolist() for _ in range(6)] == first, t
        assert len({str(f) for f in first}) > 1, t
        assert repr(t).startswith(type(t).__name__)
    assert transforms.v2.Compose([transforms.v2.ToImage(), transforms.v2.ToDtype(cairn.float32, scale=True)])(
        image()).dtype == cairn.float32
    with pytest.raises(ValueError, match="larger"):
        transforms.RandomCrop(40)(x)


def test_pillow():
    Image = pytest.importorskip("PIL.Image")
    x = image()
    pil = transforms.ToPILImage()(x)
    assert isinstance(pil, Image.Image) and transforms.PILToTensor()(pil).tolist() == x.tolist()


# ---- files ----


def test_grids_and_files(tmp_path):
    x = cairn.tensor(np.random.default_rng(0).random((5, 1, 4, 6), dtype=np.float32))
    grid = utils.make_grid(x, nrow=3, padding=2, pad_value=0.5)
    assert grid.shape == (3, 2 * 6 + 2, 3 * 8 + 2)
    np.testing.assert_array_equal(grid[0, 8:12, 10:16].numpy(), x[4, 0].numpy())
    assert grid[0, 0, 0].item() == 0.5 and grid[0, 9, 20].item() == 0.5
    scaled = utils.make_grid(x, normalize=True)
    assert 0 <= scaled.min().item() and scaled.max().item() <= 1.000001
    for name in ("grid.png", "grid.ppm"):
        utils.save_image(x, tmp_path / name, nrow=3)
        assert (tmp_path / name).stat().st_size > 100
    back = read_image(tmp_path / "grid.ppm")
    np.testing.assert_array_equal(back.numpy(), (utils.make_grid(x, nrow=3).numpy() * 255 + 0.5).astype(np.uint8))
    with pytest.raises(OSError):
        read_image(tmp_path / "none.png")
