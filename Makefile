# The front door. CMake does the building; these are the commands a person types.
#
#   make          build into build/
#   make demo     install what is missing, build, and reduce a real file
#   make check    install what is missing, build, and run every test
#   make bench    the comparison table: ours against its peers and the memory's speed
#   make bench-gpu  our CUDA kernels against CUB's (needs nvcc and a CUDA device)
#   make install  install library, header, command and man page (PREFIX=/usr/local)
#   make format   lay out the sources as .clang-format says

PREFIX ?= /usr/local
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

all:
	@scripts/install-deps build
	@cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DTALLY_TESTS=OFF >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) -- --no-print-directory

demo: all
	@python3=/usr/bin/python3; [ -x $$python3 ] || python3=python3; $$python3 scripts/demo.py $(BUILD)

check:
	@scripts/install-deps check
	@scripts/check

bench: all
	@python3=/usr/bin/python3; [ -x $$python3 ] || python3=python3; $$python3 bench/compare.py $(BUILD) $(BENCH)

# A program a case: KERNEL:OP:TYPE. BENCH_RUN= only compiles them.
CUB_CASES = $(foreach t,F32 F64 BF16,sum:SUM:$t order:MAX:$t) $(foreach t,I32 I64,integer_sum:SUM:$t order:MAX:$t)
NVCC ?= $(or $(shell command -v nvcc),/usr/local/cuda/bin/nvcc)
BENCH_RUN ?= yes
bench-gpu:
	@mkdir -p $(BUILD)/bench-gpu
	@set -e; for case in $(CUB_CASES); do \
	  set -- $$(echo $$case | tr : ' '); program=$(BUILD)/bench-gpu/$$1-$$2-$$3; \
	  $(NVCC) -O3 -std=c++17 -arch=$(or $(CUDA_ARCH),sm_90) -fmad=false -Isrc "-DCASE_FILE=\"kernels/$$1.cu\"" \
	    "-DCASE=\"$$2 $$3\"" -DOP_$$2 -DTYPE_$$3 -o $$program bench/cub.cu; \
	  if [ -n "$(BENCH_RUN)" ]; then $$program; fi; \
	done

install: all
	@cmake --install $(BUILD)

format:
	@git ls-files '*.c' '*.h' '*.cu' | xargs clang-format -i

clean:
	rm -rf $(BUILD) build-*

.PHONY: all demo check bench bench-gpu install format clean
