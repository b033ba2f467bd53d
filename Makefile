# The front door. CMake does the building; these are the commands a person types.
#
#   make          build into build/ (V=1 shows every command)
#   make demo     install what is missing, build, and reduce a real file
#   make check    install what is missing, build, and run every suite, some of its cases: at most eight minutes of two cores
#   make check-all  the same, then every other test: what continuous integration runs
#   make check-python  the Python package's tests alone
#   make bench    the comparison tables: ours against its peers (installed where that can be done) and the memory's speed
#   make bench-gpu  our CUDA kernels against CUB's (needs nvcc and a CUDA device)
#   make page     docs/reduction.html, the page of `tally report`, and the picture in the README
#   make bench-gpu-parts  the same of reductions in parts
#   make bench-gpu-host   arrays in host memory on one GPU and on all, beside the bus
#   make install  install library, header, command, man page and completions (PREFIX=/usr/local, DESTDIR)
#   make uninstall  remove them again
#   make deb      Debian packages libtally0, libtally-dev and tally, in build-deb/
#   make wheel    the Python package as a manylinux_2_28 wheel in dist/, tested with the oldest and the newest CPython here
#   make format   lay out the sources as .clang-format says, and wrap the pages

PREFIX ?= /usr/local
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
ifeq ($(V),1)
verbose = --verbose
else
quiet = >/dev/null
endif

all:
	@scripts/install-deps build
	@cmake -S . -B "$(BUILD)" -DCMAKE_INSTALL_PREFIX="$(PREFIX)" -DTALLY_TESTS=OFF "-DTALLY_CUDA_ARCHITECTURES=80;90;100" -DTALLY_CUDA_QUICK=OFF $(quiet)
	@cmake --build "$(BUILD)" -j $(JOBS) $(verbose) -- --no-print-directory

demo: all
	@python3=/usr/bin/python3; [ -x $$python3 ] || python3=python3; $$python3 scripts/demo.py "$(BUILD)"

check:
	@scripts/install-deps check
	@scripts/check

check-all:
	@scripts/install-deps check
	@scripts/check all

check-python:
	@scripts/install-deps check
	@scripts/check python more-python

bench: all
	@scripts/install-deps bench "$(BUILD)" || echo "bench: some peers are left out"
	@for python3 in "$(BUILD)/peers/bin/python3" /usr/bin/python3 python3; do \
	    command -v $$python3 >/dev/null && break; done; $$python3 bench/compare.py "$(BUILD)" $(BENCH)

NVCC ?= $(or $(shell command -v nvcc),/usr/local/cuda/bin/nvcc)
$(BUILD)/bin/bench_%: bench/%.cu all
	@$(NVCC) -O3 -std=c++17 -arch=$(or $(CUDA_ARCH),sm_90) $(NVCC_FLAGS) -Iinclude -Isrc -o $@ $< $(BUILD)/lib/libtally.a

# NCCL's own header and library are the program's; libtally_nccl finds the same one at run time.
$(BUILD)/bin/bench_nccl: bench/nccl.cu all
	@$(NVCC) -O3 -std=c++20 -arch=$(or $(CUDA_ARCH),sm_90) $(NVCC_FLAGS) -I. -Iinclude -Inccl -o $@ $< $(BUILD)/lib/libtally_nccl.a $(BUILD)/lib/libtally.a -lnccl

bench-gpu: $(BUILD)/bin/bench_cub
	@$(BUILD)/bin/bench_cub $(BENCH)

page: all
	@"$(BUILD)/bin/tally" report -o docs/reduction.html
	@"$(BUILD)/bin/tally" explain contiguous -n 8 --block 4 --svg docs/contiguous.svg

bench-gpu-parts: $(BUILD)/bin/bench_cub_parts
	@$(BUILD)/bin/bench_cub_parts $(BENCH)

bench-gpu-ranks: $(BUILD)/bin/bench_nccl
	@$(BUILD)/bin/bench_nccl $(BENCH)

bench-gpu-host: $(BUILD)/bin/bench_host_arrays
	@$(BUILD)/bin/bench_host_arrays $(BENCH)

install: all
	@cmake --install "$(BUILD)" $(quiet)
	@echo "installed into $(DESTDIR)$(PREFIX)"

uninstall:
	@scripts/uninstall "$(BUILD)"

deb:
	@scripts/install-deps deb
	@scripts/make-deb build-deb

wheel:
	@scripts/make-wheel dist

format:
	@git ls-files '*.c' '*.h' '*.cu' '*.cpp' | xargs clang-format -i
	@scripts/wrap

clean:
	rm -rf "$(BUILD)" build-*

.PHONY: all demo check check-all check-python bench bench-gpu bench-gpu-parts bench-gpu-host bench-gpu-ranks page install uninstall deb wheel format clean
