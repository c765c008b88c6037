"""Packaging for setuptools. What is built, and how, stands in build_modules.py; the rest is in pyproject.toml."""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
os.chdir(HERE)
sys.path.insert(0, str(HERE))
try:
    import build_modules
    VERSION = build_modules.version()
except OSError as error:
    raise SystemExit(f"the package is built inside a checkout of Cairn: {error}") from error


class BuildFiles(build_py):
    def run(self):
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # else files that were removed would live on in wheels
        super().run()


class BuildModules(build_ext):
    def run(self):
        in_place = self.inplace or getattr(self, "editable_mode", False)
        package = HERE / "cairn" if in_place else Path(self.build_lib, "cairn").resolve()
        library = build_modules.build(package)
        if not in_place:
            build_modules.write_stubs(package, library)


build_modules.WORK.mkdir(parents=True, exist_ok=True)
setup(
    version=VERSION,
    ext_modules=[Extension("cairn._C", []), Extension("cairn._micrograd", [])],  # names alone: CMake knows the sources
    cmdclass={"build_py": BuildFiles, "build_ext": BuildModules},
    options={"egg_info": {"egg_base": str(build_modules.WORK)},
             "build": {"build_base": str(build_modules.WORK / "setuptools")}},
)
