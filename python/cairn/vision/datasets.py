"""Datasets of images on local files. Nothing is downloaded: the errors say where files belong.

Items are (image, label): the image is uint8 (channels, height, width), then what transform makes of it.
"""

import os

import cairn

from ..utils.data import Dataset
from .io import read_image
from .transforms import Compose, batched

__all__ = ["CIFAR10", "CIFAR100", "DatasetFolder", "FakeData", "FashionMNIST", "ImageFolder", "KMNIST", "MNIST",
           "VisionDataset"]

EXTENSIONS = (".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pnm", ".pbm")


class VisionDataset(Dataset):
    """Holds the folder and the transforms; transforms(image, label) in place of the two others."""

    def __init__(self, root=None, transforms=None, transform=None, target_transform=None):
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.root = os.path.expanduser(root) if isinstance(root, (str, bytes)) else root
        self.transforms, self.transform, self.target_transform = transforms, transform, target_transform

    def _finished(self, image, target):
        if self.transforms is not None:
            return self.transforms(image, target)
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __repr__(self):
        lines = [f"Dataset {type(self).__name__}", f"    Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"    Root location: {self.root}")
        return "\n".join(lines)


class _InMemory(VisionDataset):
    """Images and labels in two tensors, `data` (n, ...) and `targets`."""

    def __len__(self):
        return len(self.data)

    def _image(self, index):
        raise NotImplementedError

    def __getitem__(self, index):
        return self._finished(self._image(index), self._labels[index])

    def _whole_batch(self, indices):
        """A batch at once, if the transform allows it: see DataLoader."""
        plain = type(self).__getitem__ is _InMemory.__getitem__ and isinstance(self.transform, Compose)
        if not plain or self.transforms is not None or self.target_transform is not None:
            return None
        images = batched(self.transform, self._image(cairn.tensor(indices, dtype=cairn.int64)))
        return None if images is None else [images, cairn.tensor([self._labels[i] for i in indices])]


def _missing(name, folder, files):
    return FileNotFoundError(
        f"{name}: the files {', '.join(files)} must be in {folder} (plain or .gz); nothing is downloaded"
    )


def _no_download(name, folder):
    raise NotImplementedError(f"{name}: download=True is not there. Put the files into {folder}, and leave download "
                              "out")


def _read_idx(folder, name, dataset):
    """A file of MNIST's format: numbers of axes and sizes, then bytes."""
    paths = (os.path.join(folder, name + end) for end in ("", ".gz"))
    path = next((p for p in paths if os.path.exists(p)), None)
    if path is None:
        raise _missing(dataset, folder, [name])
    if path.endswith(".gz"):
        import gzip

        with gzip.open(path) as f:
            data = f.read()
    else:
        with open(path, "rb") as f:
            data = f.read()
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise ValueError(f"{path}: this is not an idx file of bytes")
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3])]
    count = 1
    for n in shape:
        count *= n
    body = data[4 + 4 * data[3] :]
    if len(body) != count:
        raise ValueError(f"{path}: expects {count} bytes after its header, got {len(body)}")
    return cairn.frombuffer(bytearray(body), dtype=cairn.uint8).reshape(*shape)


class MNIST(_InMemory):
    """Digits, 28 by 28: the four idx files, plain or .gz, in root/MNIST/raw or in root itself."""

    classes = ["0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven",
               "8 - eight", "9 - nine"]

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        kind = "train" if train else "t10k"
        images, labels = f"{kind}-images-idx3-ubyte", f"{kind}-labels-idx1-ubyte"
        folder = self._folder(images)
        if folder is None:
            if download:
                _no_download(type(self).__name__, self.raw_folder)
            raise _missing(type(self).__name__, self.raw_folder, [images, labels])
        self.data = _read_idx(folder, images, type(self).__name__)
        self.targets = _read_idx(folder, labels, type(self).__name__).to(cairn.int64)
        self._labels = self.targets.tolist()
        if len(self._labels) != len(self.data):
            raise ValueError(f"{folder}: {len(self.data)} images and {len(self._labels)} labels")

    @property
    def raw_folder(self):
        return os.path.join(self.root, type(self).__name__, "raw")

    def _folder(self, name):
        for folder in (self.raw_folder, os.path.join(self.root, type(self).__name__), self.root):
            if any(os.path.exists(os.path.join(folder, name + end)) for end in ("", ".gz")):
                return folder
        return None

    @property
    def class_to_idx(self):
        return {name: i for i, name in enumerate(self.classes)}

    def _image(self, index):
        return self.data[index].unsqueeze(-3)


class FashionMNIST(MNIST):
    """Clothes, in the files of MNIST's format."""

    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """Letters of old Japanese, in the files of MNIST's format."""

    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class CIFAR10(_InMemory):
    """Small photographs, 32 by 32: the binary version, root/cifar-10-batches-bin/data_batch_1.bin .. test_batch.bin."""

    base_folder = "cifar-10-batches-bin"
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    _files = {True: [f"data_batch_{i}.bin" for i in range(1, 6)], False: ["test_batch.bin"]}
    _label_bytes = 1

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        names = self._files[bool(train)]
        folder = os.path.join(self.root, self.base_folder)
        if not os.path.exists(os.path.join(folder, names[0])):
            if os.path.exists(os.path.join(self.root, names[0])):
                folder = self.root
            elif download:
                _no_download(type(self).__name__, folder)
            else:
                raise FileNotFoundError(f"{type(self).__name__}: the files {', '.join(names)} of the binary version "
                                        f"must be in {folder}; nothing is downloaded")
        parts = []
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                data = f.read()
            size = self._label_bytes + 3072
            if len(data) % size:
                raise ValueError(f"{os.path.join(folder, name)}: expects records of {size} bytes, got {len(data)} "
                                 "bytes")
            parts.append(cairn.frombuffer(bytearray(data), dtype=cairn.uint8).reshape(-1, size))
        whole = cairn.cat(parts, 0)
        self.data = whole[:, self._label_bytes :].reshape(-1, 3, 32, 32).contiguous()
        self.targets = self._labels = whole[:, self._label_bytes - 1].tolist()

    @property
    def class_to_idx(self):
        return {name: i for i, name in enumerate(self.classes)}

    def _image(self, index):
        return self.data[index]


class CIFAR100(CIFAR10):
    """The binary version, root/cifar-100-binary/train.bin and test.bin; the fine labels."""

    base_folder = "cifar-100-binary"
    classes = [str(i) for i in range(100)]
    _files = {True: ["train.bin"], False: ["test.bin"]}
    _label_bytes = 2


class DatasetFolder(VisionDataset):
    """Files root/class/any/file; loader(path) reads one. Labels are the numbers of the sorted classes."""

    def __init__(self, root, loader, extensions=None, transform=None, target_transform=None, is_valid_file=None,
                 allow_empty=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader
        self.extensions = extensions
        self.classes, self.class_to_idx = self.find_classes(self.root)
        valid = is_valid_file or (lambda path: path.lower().endswith(tuple(extensions)))
        self.samples = []
        for name in self.classes:
            for folder, _, files in sorted(os.walk(os.path.join(self.root, name), followlinks=True)):
                paths = (os.path.join(folder, f) for f in sorted(files))
                self.samples += [(path, self.class_to_idx[name]) for path in paths if valid(path)]
        self.targets = [target for _, target in self.samples]
        empty = set(range(len(self.classes))) - set(self.targets)
        if empty and not allow_empty:
            names = ", ".join(self.classes[i] for i in sorted(empty))
            raise FileNotFoundError(f"Found no valid file for the classes {names}."
                                    + (f" Supported extensions are: {', '.join(extensions)}" if extensions else ""))

    def find_classes(self, directory):
        classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        if not classes:
            raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
        return classes, {name: i for i, name in enumerate(classes)}

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        return self._finished(self.loader(path), target)


class ImageFolder(DatasetFolder):
    """Images root/class/any/file.png, .jpg, .ppm, ..., read as uint8 (3, height, width)."""

    def __init__(self, root, transform=None, target_transform=None, loader=read_image, is_valid_file=None,
                 allow_empty=False):
        super().__init__(root, loader, EXTENSIONS if is_valid_file is None else None, transform, target_transform,
                         is_valid_file, allow_empty)
        self.imgs = self.samples


class FakeData(VisionDataset):
    """Random images of random classes; item i is always the same."""

    def __init__(self, size=1000, image_size=(3, 224, 224), num_classes=10, transform=None, target_transform=None,
                 random_offset=0):
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes, self.random_offset = size, image_size, num_classes, random_offset

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index >= self.size:
            raise IndexError(f"{type(self).__name__} index out of range")
        generator = cairn.Generator()
        generator.manual_seed(index + self.random_offset)
        image = cairn.randint(0, 256, tuple(self.image_size), generator=generator).to(cairn.uint8)
        target = int(cairn.randint(0, self.num_classes, (1,), generator=generator).item())
        return self._finished(image, target)
