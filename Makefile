# Builds pyvecgpu: the GPU library with nvcc, and the simulated card from the same sources with g++.
#
#   make                  both libraries, in pyvecgpu/
#   make demo             trains a network with them
#   make help             every target
#   PYTHON=python3 make   uses that interpreter as it is: no .venv, nothing is installed
#   ARCHS="80 90a ptx75"  the GPU architectures (cuda/toolkit.mk); ARCHS=all for releases
#   NVCC= CXX= CC=        the compilers; NVCCFLAGS= CXXFLAGS= CFLAGS= are added to our own flags
#   V=1                   shows the commands
#
# Source files are found by wildcard: a new kernel file needs no change here.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
ABI_VERSION := $(shell sed -n 's/^\#define PVG_ABI_VERSION \([0-9]*\).*/\1/p' cuda/pyvecgpu.h)
Q := $(if $(V),,@)

include cuda/python.mk
include cuda/toolkit.mk

# Sources and what is made of them ----------------------------------------------------------------

LIB := pyvecgpu/libpyvecgpu.so
SIM := pyvecgpu/libpyvecgpu_sim.so
ASAN := build/asan/libpyvecgpu_sim.so
TSAN := build/tsan/libpyvecgpu_sim.so
WATCH := build/watch/libpyvecgpu_sim.so
COVERAGE := build/coverage/libpyvecgpu_sim.so

KERNELS := $(wildcard $(addprefix cuda/,*.cu dtypes/*.cu runtime/*.cu arrays/*.cu kernels/*.cu \
    kernels/*/*.cu kernels/*/*/*.cu))
SIMULATOR := $(wildcard cuda/simulator/*.cpp)
C_TESTS := $(patsubst cuda/tests/%.c,%,$(wildcard cuda/tests/test_*.c))

GPU_OBJECTS := $(KERNELS:cuda/%.cu=build/gpu/%.o)
# These have no device code and no variable of a device: as plain C++ they compile in a fifth of the
# time. (What has code does not compile as such.)
HOST_ONLY := $(shell grep -L "__global__\|launch_map\|^__device__" \
    $(filter-out cuda/kernels/%,$(KERNELS)) cuda/kernels/elementwise.cu \
    cuda/kernels/matmul/*.cu cuda/kernels/matmul/plan/*.cu)
HOST_ONLY_OBJECTS := $(HOST_ONLY:cuda/%.cu=build/gpu/%.o)
SIM_OBJECTS := $(KERNELS:cuda/%.cu=build/sim/%.o) $(SIMULATOR:cuda/%.cpp=build/sim/%.o)
# Passes before and after products on tensor cores, which alone launch them: a test calls these.
PASSES := $(addprefix kernels/matmul/,simt/recompute sm80/convert \
    sm90/split sm90/tensor_operands)
PASS_OBJECTS := $(PASSES:%=build/sim/%.o)
PASS_TEST := build/sim/tests/test_passes
SIM_OBJECTS := $(filter-out $(PASS_OBJECTS),$(SIM_OBJECTS))
ASAN_OBJECTS := $(SIM_OBJECTS:build/sim/%=build/asan/%)
TSAN_OBJECTS := $(SIM_OBJECTS:build/sim/%=build/tsan/%)
COVERAGE_OBJECTS := $(SIM_OBJECTS:build/sim/%=build/coverage/%)
GUIDED_OBJECTS := $(SIM_OBJECTS:build/sim/%=build/guided/%)
# The access checker's kernels are ThreadSanitizer's.
WATCH_OBJECTS := $(filter-out build/tsan/simulator/%,$(TSAN_OBJECTS)) \
    $(SIMULATOR:cuda/%.cpp=build/watch/%.o)
GPU_TESTS := $(C_TESTS:%=build/tests/%)
SIM_TESTS := $(C_TESTS:%=build/tests/sim/%)
ASAN_TESTS := $(C_TESTS:%=build/tests/asan/%)
# ThreadSanitizer is slow: tests of products, reductions and elementwise kernels, and those that
# make threads but test_staging, which would take 40 s; the others are made when they are asked for
# (`make build/tests/tsan/test_sort`). The access checker, which also keeps the host off device
# memory, has all but those about threads, staging and lost devices, and of later cards, whose
# barriers in shared memory it does not know.
TSAN_TESTS := $(addprefix build/tests/tsan/test_,contexts dense elementwise error \
    graph matmul reduce threads)
WATCH_TESTS := $(filter-out %_contexts %_fault %_graph %_plan %_staging %_threads,$(C_TESTS))
WATCH_TESTS := $(WATCH_TESTS:%=build/tests/watch/%)
# The simulator's tests of itself have kernels of their own and are linked with it alone.
SELF_TESTS := $(patsubst cuda/%.cu,build/sim/%,$(wildcard cuda/simulator/tests/test_*.cu))
SELF_TESTS += $(foreach build,asan tsan watch,build/$(build)/simulator/tests/test_plants)
SELF_TESTS += $(PASS_TEST) build/sim/tests/test_positions

.PHONY: all lib sim sim-asan ctest test test-checkers test-sim test-asan test-order test-watch \
    test-races test-gpu mutants fuzz fuzz-guided gates coverage conformance demo bench memcheck \
    lint format install clean help FORCE stubs docs

all: lib sim
	@echo 'Built $(LIB) ($(ARCHITECTURES)) and $(SIM). Next: make demo$(PYTHON_ARGUMENT)'

lib: $(LIB)            ## the GPU library, pyvecgpu/libpyvecgpu.so (nvcc)
sim: $(SIM)            ## the simulated card, pyvecgpu/libpyvecgpu_sim.so (g++)
sim-asan: $(ASAN)      ## the simulated card with AddressSanitizer and UBSan, in build/asan

# Flags -------------------------------------------------------------------------------------------

comma := ,
WARNINGS := -Wall -Wextra -Werror
# Nothing unwinds the GPU library's stack, and the tables for it are a tenth of the host's code.
HOST_FLAGS := -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti \
    -fno-asynchronous-unwind-tables $(WARNINGS)
# What pvg_build_info answers: strings for the sources.
BUILD_MACROS = -DPVG_BUILD_VERSION='"$(VERSION)"' -DPVG_BUILD_TOOLKIT='"$(TOOLKIT_RELEASE)"' \
    -DPVG_BUILD_ARCHITECTURES='"$(1)"'

# Launch bounds count on 2048 threads a multiprocessor. For cards that hold fewer ptxas leaves out
# how many blocks shall fit, and says so of every kernel.
DEVICE_WARNINGS = $(if $(filter-out 80 90a 100 ptx75,$(ARCHITECTURES)),-Xptxas \
    --disable-warnings,-Werror=all-warnings)
GPU_FLAGS = -std=c++17 -O3 -Icuda -ccbin $(CXX) $(CODE) $(call BUILD_MACROS,$(ARCHITECTURES)) \
    --compress-mode=size $(DEVICE_WARNINGS) $(HOST_FLAGS:%=-Xcompiler %) $(NVCCFLAGS)
# nvcc's front end makes the same PTX of most files for 8.0 and for 9.0, and so works once for both,
# which saves a sixth of the time: $(call as_of,LOWER,HIGHER), what is made for HIGHER architectures
# is made of the PTX for the first of LOWER that is made anyway.
is_made = $(filter $(1) ptx$(1),$(ARCHITECTURES))
lowest = $(firstword $(foreach arch,$(1),$(if $(call is_made,$(arch)),$(arch))))
as_of = $(foreach arch,$(ARCHITECTURES),$(call gencode,$(arch),$(if \
    $(filter $(2),$(arch)),$(call lowest,$(1)))))
CODE = $(call as_of,80,90a)
# These have code for 9.0, include what has, or get other PTX for it.
OF_SM90 := $(wildcard $(addprefix cuda/kernels/,attention_wgmma*.cu gather.cu hopper.cu \
    normalize*.cu radix.cu) $(addprefix cuda/kernels/matmul/,simt/*.cu sm80/*.cu sm90/*.cu))
OF_SM90 := $(filter-out %/tiled.cu %/dots.cu,$(OF_SM90))
# PTX for 7.5 does as well for these: results are rounded to bfloat16, and compared with NaN, in
# several steps, which are few beside what is read. (Not for what includes map.cuh, whose launch
# bounds would be those of a card of 7.5, which holds half as many threads.)
OF_SM75 := $(wildcard $(addprefix cuda/kernels/,accumulate.cu bincount.cu factor.cu gather.cu \
    learn.cu nonzero.cu norms.cu reduce.cu reduce_statistics.cu searchsorted.cu sort*.cu \
    top_k.cu triangle.cu) \
    $(addprefix cuda/kernels/matmul/simt/,copy_rows.cu pretranspose.cu thin.cu tiled.cu))
# private: else the flags that these objects depend on would be others when one is made first.
$(OF_SM90:cuda/%.cu=build/gpu/%.o): private CODE = $(GENCODE)
$(OF_SM75:cuda/%.cu=build/gpu/%.o): private CODE = $(call as_of,75 80,80 90a)
$(patsubst cuda/%.cu,build/gpu/%.o,$(filter $(OF_SM90),$(OF_SM75))): private \
    CODE = $(call as_of,75 80,80)
# No contraction of a * b + c, which g++ does on some machines and not on others.
# cuda_builtins.h gives plain C++ what nvcc adds to it, so the .cu files compile unchanged.
SIM_FLAGS = -std=c++17 -Icuda -isystem $(CUDA_INCLUDE) -isystem $(CUDA_INCLUDE)/cccl \
    -DPVG_SIMULATOR $(call BUILD_MACROS,75 80 90a) -fPIC -fvisibility=hidden -pthread \
    -ffp-contract=off $(WARNINGS) -Wno-unknown-pragmas -Wno-psabi $(CXXFLAGS)
ON_SIMULATOR := -DPVG_TEST_SIMULATOR -Icuda/simulator
# C tests are compiled for every build of the library: for one of them with what warnings need,
# for the others in a fifth of the time.
TEST_FLAGS := -std=c99 -pedantic -Icuda $(WARNINGS) $(CFLAGS)
build/tests/test_% build/tests/soak: TEST_FLAGS += -g -O1
build/tests/sim/% build/tests/asan/% build/tests/tsan/% build/tests/watch/%: TEST_FLAGS += -g1 -O0
build/tests/coverage/%: TEST_FLAGS += -g1 -O0

BUILDS := sim asan tsan watch coverage guided
# The builds of the simulated card. ThreadSanitizer is its race checker: it watches the kernels, not
# the simulator that runs them (race_checker.h). The access checker is the simulator's own, behind
# the same calls in the kernels (watch.cpp). Their reports need lines and no more (-g1).
# AddressSanitizer and the bounds of arrays tell what object-size would, which takes a quarter of
# the time to compile; -Og and checks that are calls take half of what is left.
SANITIZERS := -fsanitize=address,undefined -fno-sanitize=object-size \
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CHECKS_ARE_CALLS := --param asan-instrumentation-with-call-threshold=0
build/sim/%: VARIANT := -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
build/asan/%: VARIANT := -Og -g1 $(SANITIZERS) $(CHECKS_ARE_CALLS)
build/tsan/%: VARIANT := -O1 -g1 -DPVG_SIM_TSAN
build/tsan/%: KERNEL_VARIANT := -fsanitize=thread --param tsan-distinguish-volatile=1
build/watch/%: VARIANT := -O2 -g1 -DPVG_SIM_WATCH
build/watch/%: KERNEL_VARIANT := -O1 -fsanitize=thread --param tsan-distinguish-volatile=1
# Which lines run: tests/gates. Kernels run in threads, and the simulator itself is not counted.
build/coverage/%: VARIANT := -O1 -g0
build/coverage/%: KERNEL_VARIANT := -O0 --coverage -fprofile-update=prefer-atomic
# The library, not the simulator, says where it has been: tests/fuzz_guided.c.
build/guided/%: VARIANT := -Og -g1 $(SANITIZERS) $(CHECKS_ARE_CALLS)
build/guided/%: KERNEL_VARIANT := -fsanitize-coverage=trace-pc

# Only pvg_* is visible, every symbol is resolved when linking, and tables are read-only after it.
LINK := -z,defs -z,relro -z,now -z,noexecstack --as-needed --exclude-libs,ALL \
    --version-script=cuda/exports.map
# A wheel goes without the names of what is not exported.
LINK += $(if $(PVG_WHEEL),-s)

# Rules -------------------------------------------------------------------------------------------

# Files that hold a command's flags or a list of objects. They change only when their text does, and
# then what depends on them is made again: another ARCHS, another compiler, a source file removed.
# The same release of nvcc in another place is no other compiler.
define keep_text
$(Q)$(shell mkdir -p $(@D))$(file >$@.new,$(1))cmp -s $@.new $@ && rm $@.new || mv $@.new $@
endef

build/gpu/flags: $(COMPILER) $(TOOLKIT) FORCE
	$(if $(UNSUPPORTED_ARCHS),@echo 'nvcc $(TOOLKIT_RELEASE) does not know: $(UNSUPPORTED_ARCHS)')
	$(call keep_text,$(TOOLKIT_RELEASE) $(GPU_FLAGS) $(OF_SM90) / $(OF_SM75) \
	    $(shell $(CXX) --version))
$(BUILDS:%=build/%/flags): $(COMPILER) $(TOOLKIT) FORCE
	$(call keep_text,$(TOOLKIT_RELEASE) $(filter-out $(CUDA_INCLUDE)%,$(SIM_FLAGS)) \
	    $(VARIANT) $(KERNEL_VARIANT) \
	    $(shell $(CXX) --version))
$(foreach build,gpu $(BUILDS),build/$(build)/objects): FORCE
	$(call keep_text,$(KERNELS) $(SIMULATOR))

# Products are tuned to their registers: a spill fails the build (but in the portable kernel), and
# so does what ptxas only mentions: that it has serialised warpgroup products (C7510 and its like).
build/gpu/kernels/matmul/%.o: PTXAS_FLAGS := -Xptxas --warn-on-spills
build/gpu/kernels/matmul/simt/tiled.o: PTXAS_FLAGS :=
$(HOST_ONLY_OBJECTS): LANGUAGE := -x c++ -include cuda_runtime.h -Xcompiler -Wno-unknown-pragmas
# What an object depends on is without the toolkit's headers: its release is among the flags.
build/gpu/%.o: cuda/%.cu build/gpu/flags
	@mkdir -p $(@D) && echo 'nvcc $<'
	$(Q)$(NVCC_PATH) $(GPU_FLAGS) $(PTXAS_FLAGS) $(LANGUAGE) -MMD -MP -MF $(@:.o=.d) \
	    -c $< -o $@ 2>&1 | tee $(@:.o=.messages)
	$(Q)sed -i 's|^ */[^ :]*:\{0,1\}||' $(@:.o=.d)
	$(Q)if grep -q '(C75[0-9][0-9])' $(@:.o=.messages); then \
	    echo '$<: warpgroup products are serialised' >&2; exit 1; fi

define compile_for_simulator
	@mkdir -p $(@D) && echo 'g++  $@'
	$(Q)$(CXX) $(SIM_FLAGS) $(VARIANT) -MMD -MP $(1) -c $< -o $@
endef
# What every .cu file begins with is read once for each build: of small files that is most of it.
PRELUDE = build/$(word 2,$(subst /, ,$@))/prelude.h
SIM_CU_FLAGS = $(KERNEL_VARIANT) -include $(PRELUDE) -x c++
$(BUILDS:%=build/%/prelude.h.gch): build/%/prelude.h.gch: build/%/flags
	@echo '#include "simulator/cuda_builtins.h"' >$(PRELUDE)
	$(Q)$(CXX) $(SIM_FLAGS) $(VARIANT) $(KERNEL_VARIANT) -MMD -MP -MF $(PRELUDE).d -MT $@ \
	    -x c++-header $(PRELUDE) -o $@
build/sim/%.o: cuda/%.cu build/sim/flags build/sim/prelude.h.gch
	$(call compile_for_simulator,$(SIM_CU_FLAGS))
build/sim/%.o: cuda/%.cpp build/sim/flags
	$(call compile_for_simulator)
build/asan/%.o: cuda/%.cu build/asan/flags build/asan/prelude.h.gch
	$(call compile_for_simulator,$(SIM_CU_FLAGS))
build/asan/%.o: cuda/%.cpp build/asan/flags
	$(call compile_for_simulator)
build/tsan/%.o: cuda/%.cu build/tsan/flags build/tsan/prelude.h.gch
	$(call compile_for_simulator,$(SIM_CU_FLAGS))
build/tsan/%.o: cuda/%.cpp build/tsan/flags
	$(call compile_for_simulator)
build/watch/%.o: cuda/%.cu build/watch/flags build/watch/prelude.h.gch
	$(call compile_for_simulator,$(SIM_CU_FLAGS))
build/watch/%.o: cuda/%.cpp build/watch/flags
	$(call compile_for_simulator)
build/coverage/%.o: cuda/%.cu build/coverage/flags build/coverage/prelude.h.gch
	$(call compile_for_simulator,$(SIM_CU_FLAGS))
build/coverage/%.o: cuda/%.cpp build/coverage/flags
	$(call compile_for_simulator)
build/guided/%.o: cuda/%.cu build/guided/flags build/guided/prelude.h.gch
	$(call compile_for_simulator,$(SIM_CU_FLAGS))
build/guided/%.o: cuda/%.cpp build/guided/flags
	$(call compile_for_simulator)

# $(call link_gpu,soname): the CUDA runtime goes in, the driver is looked up when it is needed.
define link_gpu
$(Q)$(NVCC_PATH) -shared -ccbin $(CXX) -cudart static -L$(CUDA_LIB) $(GENCODE) $(GPU_OBJECTS) \
    $(LINK:%=-Xlinker %) -Xlinker -soname,$(1) -o $@
endef
$(LIB): $(GPU_OBJECTS) build/gpu/objects cuda/exports.map
	@mkdir -p $(@D) && echo 'link $@'
	$(call link_gpu,libpyvecgpu.so)
# simulator/glibc.cpp
OLDER_GLIBC := $(if $(filter x86_64,$(shell uname -m)),$(addprefix -Wl$(comma)--wrap=,hypot hypotf))
define link_simulator
	@mkdir -p $(@D) && echo 'link $@'
	$(Q)$(CXX) -shared -pthread $(filter %.o,$^) $(LINK:%=-Wl,%) $(OLDER_GLIBC) \
	    -Wl,-soname,$(@F) $(1) -o $@
endef
$(SIM): $(SIM_OBJECTS) build/sim/objects cuda/exports.map
	$(call link_simulator)
$(ASAN): $(ASAN_OBJECTS) build/asan/objects cuda/exports.map
	$(call link_simulator,$(SANITIZERS))
$(TSAN): $(TSAN_OBJECTS) build/tsan/objects cuda/exports.map
	$(call link_simulator,-fsanitize=thread)
$(PASS_TEST): $(PASS_OBJECTS) $(SIM_OBJECTS)
$(WATCH): $(WATCH_OBJECTS) build/watch/objects cuda/exports.map
	$(call link_simulator)
$(COVERAGE): $(COVERAGE_OBJECTS) build/coverage/objects cuda/exports.map
	$(call link_simulator,--coverage)
$(foreach build,sim asan tsan watch,$(eval $(filter build/$(build)/%,$(SELF_TESTS)): \
    $(SIMULATOR:cuda/%.cpp=build/$(build)/%.o)))
build/asan/simulator/tests/test_%: LINK_VARIANT := $(SANITIZERS)
build/tsan/simulator/tests/test_%: LINK_VARIANT := -fsanitize=thread
$(SELF_TESTS): %: %.o
	@echo 'link $@'
	$(Q)$(CXX) -pthread $(filter %.o,$^) $(LINK_VARIANT) -o $@

# $(call build_c_test,library,flags,the way to its folder): runs from any folder.
define build_c_test
	@mkdir -p $(@D) && echo 'cc   $@'
	$(Q)$(CC) $(TEST_FLAGS) $(2) -MMD -MP $< -o $@ $(1) '-Wl,-rpath,$$ORIGIN/$(3)' -pthread -lm
endef
build/tests/test_%: cuda/tests/test_%.c $(LIB)
	$(call build_c_test,$(LIB),,../../pyvecgpu)
build/tests/soak: cuda/tests/soak.c $(LIB)
	$(call build_c_test,$(LIB),,../../pyvecgpu)
build/tests/sim/%: cuda/tests/%.c $(SIM)
	$(call build_c_test,$(SIM),$(ON_SIMULATOR),../../../pyvecgpu)
build/tests/asan/%: cuda/tests/%.c $(ASAN)
	$(call build_c_test,$(ASAN),$(ON_SIMULATOR) $(SANITIZERS),../../asan)
build/tests/tsan/test_%: cuda/tests/test_%.c $(TSAN)
	$(call build_c_test,$(TSAN),$(ON_SIMULATOR) -fsanitize=thread,../../tsan)
build/tests/watch/test_%: cuda/tests/test_%.c $(WATCH)
	$(call build_c_test,$(WATCH),$(ON_SIMULATOR),../../watch)
build/tests/coverage/test_%: cuda/tests/test_%.c $(COVERAGE)
	$(call build_c_test,$(COVERAGE),$(ON_SIMULATOR),../../coverage)

OBJECTS := $(GPU_OBJECTS) $(SIM_OBJECTS) $(PASS_OBJECTS) $(ASAN_OBJECTS) $(TSAN_OBJECTS) \
    $(WATCH_OBJECTS) $(COVERAGE_OBJECTS) $(GUIDED_OBJECTS)
-include $(wildcard $(OBJECTS:.o=.d) $(SELF_TESTS:=.d))
-include $(wildcard build/*/prelude.h.d)
-include $(wildcard $(addsuffix .d,$(GPU_TESTS) $(SIM_TESTS) $(ASAN_TESTS) $(TSAN_TESTS) \
    $(WATCH_TESTS)))

include cuda/targets.mk
include cuda/package.mk
include cuda/lessons.mk
