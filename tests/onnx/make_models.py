"""Writes cases of whole models, as make_cases.py does those of single nodes: outputs are onnxruntime's.

    python tests/onnx/make_models.py FOLDER MODEL.onnx...

A result may differ by 1e-4, or by what onnxruntime's own result changes when the last bits of the inputs change, if that
is more: a model that quantises as it runs may turn a last bit into a step of 1/256. Inputs are drawn at random. Symbolic axes get the sizes of SIZES below, by the name of the axis, else 1 for the first axis
and 64 for others.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

SIZES = {"batch": 2, "batch_size": 2}
SHAPES = {  # of models that accept some sizes only
    "common_det": {"images": (1, 3, 416, 416)},
    "common": {"input1": (1, 1, 64, 160)},
    "common_old": {"input1": (1, 1, 64, 160)},
    "nmp": {"serving_default_input_2:0": (2, 43844, 1)},
    "silero_vad_v6": {"input": (2, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
    "ch_PP-OCRv4_det_infer": {"x": (1, 3, 320, 320)},
    "ch_PP-OCRv4_rec_infer": {"x": (2, 3, 48, 320)},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": (2, 3, 48, 192)},
}
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_,
         "tensor(float16)": np.float16, "tensor(double)": np.float64, "tensor(uint8)": np.uint8}


def draw(random, name, given):
    shape = SHAPES.get(name, {}).get(given.name)
    if shape is None:
        shape = [d if isinstance(d, int) else SIZES.get(d, 1 if i == 0 else 64) for i, d in enumerate(given.shape)]
    dtype = TYPES[given.type]
    if dtype == np.bool_:
        return random.random(shape) < 0.5
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(shape).astype(dtype) * 0.5
    return random.integers(1, 15, shape).astype(dtype)


def change_of(session, feeds, outputs):
    """How much the results change when floating inputs change in their last bits."""
    largest = 0
    for bit in (1, -1, 2):
        near = {name: (x * (1 + bit * np.finfo(x.dtype).eps)).astype(x.dtype) if np.issubdtype(x.dtype, np.floating) else x
                for name, x in feeds.items()}
        for a, b in zip(session.run(None, near), outputs):
            if np.issubdtype(a.dtype, np.floating) and a.size:
                largest = max(largest, float(np.abs(a - b).max()))
    return largest


def main():
    root = Path(sys.argv[1])
    random = np.random.default_rng(7)
    lines = []
    for path in map(Path, sys.argv[2:]):
        name = path.stem if path.stem != "model" else path.parent.name
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        feeds = {i.name: draw(random, name, i) for i in session.get_inputs()}
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(path.read_bytes())
        outputs = session.run(None, feeds)
        graph = onnx.load(path, load_external_data=False).graph
        for i, value in enumerate(graph.input):
            if value.name in feeds:
                (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(feeds[value.name]).SerializeToString())
        for i, value in enumerate(outputs):
            (folder / f"output_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
        lines.append(f"{name} 1e-4 {max(1e-4, 2 * change_of(session, feeds, outputs)):.2g} -\n")
        print(name, {k: v.shape for k, v in feeds.items()}, [o.shape for o in outputs])
    (root / "cases.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
