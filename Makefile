# The front door. CMakeLists.txt does the building; scripts/setup.sh installs what is missing.

SETUP_BUILD = @scripts/setup.sh gcc g++ cmake ninja
CONFIGURE   = @cmake --preset release -Wno-dev --log-level=WARNING >/dev/null
BUILD       = @cmake --build build --target

.PHONY: help build static demo digits gpu wheel web serve test test-long bench parity size format docs install-deps clean

help:
	@echo "make build         the library (build/libcairn.a, build/libcairn.so), examples, benchmarks"
	@echo "make static        the command as one file for any x86-64 Linux: build/static/cairn"
	@echo "make demo          train a language model on this project's own text, about a minute: build/demo"
	@echo "make digits        get MNIST and train a convolutional network on it, a minute or two"
	@echo "make gpu           get WebGPU libraries and software drivers to test with, below build/gpu"
	@echo "make wheel         the Python package: build/wheel/cairn-*.whl, for pip install"
	@echo "make web           Cairn for browsers: the package (build/web/package) and the page (build/web/page)"
	@echo "make serve         serve the page on a loopback address (ARGS=--plain: without the headers that give it threads)"
	@echo "make test          every test: release, sanitizers, clang, installation, examples, Python"
	@echo "make test-long     the same with the long variants"
	@echo "make bench         Cairn beside PyTorch and JAX, which it installs below .venv/ (ARGS=--no-peers: Cairn alone)"
	@echo "make parity        every operator compared with PyTorch, a few minutes (ARGS=\"--only add,sum\")"
	@echo "make size          the size of the stripped library, by folder and instruction set"
	@echo "make format        clang-format over the sources"
	@echo "make docs          write docs/operators.md from the operators themselves"
	@echo "make install-deps  install the tools all of this needs (Debian, Ubuntu)"
	@echo "make clean         remove build/"

build:
	$(SETUP_BUILD)
	$(CONFIGURE)
	$(BUILD) cairn_shared cairn_static cairn_cli all_examples all_bench all_tools

static:
	$(SETUP_BUILD) musl-gcc
	@cmake --preset static -Wno-dev --log-level=WARNING >/dev/null
	@cmake --build build/static --target cairn_cli

demo:
	$(SETUP_BUILD)
	$(CONFIGURE)
	$(BUILD) cairn_cli
	@build/cairn train gpt --config examples/demo.conf --out build/demo

digits:
	@scripts/get_digits.sh
	$(SETUP_BUILD)
	$(CONFIGURE)
	$(BUILD) example_07_digits
	@build/example_07_digits

gpu:
	@scripts/gpu.sh

wheel:
	$(SETUP_BUILD) python3 python3-dev python3-venv
	$(CONFIGURE)
	@scripts/python.sh wheel

web:
	@scripts/web.sh package
	@scripts/web.sh page

serve:
	@scripts/serve.py $(ARGS)

test:
	@scripts/test.sh

test-long:
	@scripts/test.sh --long

bench:
	$(SETUP_BUILD) python3
	$(CONFIGURE)
	$(BUILD) all_bench
	@scripts/bench.py $(ARGS)

parity:
	$(SETUP_BUILD) python3
	$(CONFIGURE)
	$(BUILD) cairn_shared operators_json
	@scripts/parity.sh $(ARGS)

size:
	$(SETUP_BUILD) python3
	$(CONFIGURE)
	$(BUILD) cairn_shared
	@python3 tools/size.py build

format:
	@scripts/setup.sh clang-format
	@find include src cli trials examples tests bench tools \( -name '*.[ch]' -o -name '*.cpp' \) -print0 | xargs -0 clang-format -i

docs:
	$(SETUP_BUILD)
	$(CONFIGURE)
	$(BUILD) cairn_opdoc
	@build/cairn_opdoc > build/operators.md && mv build/operators.md docs/operators.md

install-deps:
	@scripts/setup.sh

clean:
	@rm -rf build
