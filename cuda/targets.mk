# What is done with the built libraries: tests, demo, measurements, formatting, installation.

# Leaks are counted by the library itself: LeakSanitizer would end a test before its output is out.
# (tests/test_simulator.py runs a program under it.)
TEST_ENVIRONMENT := ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS=atexit_sleep_ms=0
SECONDS_PER_TEST := 600

# $(call run_tests,title,binaries,what exit status 77 is: absent or failed,environment,how many at
# once), by default one for each core: run.sh. On a card they have one after another.
CORES := $(shell nproc 2>/dev/null || echo 2)
LONGEST := %/test_dense %/test_sort
longest_first = $(filter $(LONGEST),$(1)) $(filter-out $(LONGEST),$(1))
run_tests = @env $(TEST_ENVIRONMENT) SECONDS_PER_TEST=$(SECONDS_PER_TEST) $(4) \
    bash cuda/tests/run.sh "$(1)" $(3) $(or $(5),$(CORES)) $(call longest_first,$(2))
RUN_GPU_TESTS = $(call run_tests,C tests on the GPU library,$(GPU_TESTS),absent,,1)
RUN_SIM_TESTS = $(call run_tests,C tests on the simulated card,$(SIM_TESTS),failed)
CHECKERS := build/asan/% build/watch/%
RUN_SELF_TESTS = $(call run_tests,the simulator's tests of itself,\
    $(filter-out $(CHECKERS),$(SELF_TESTS)),failed)
RUN_CHECKED_SELF_TESTS = $(call run_tests,the simulator's tests of its checkers,\
    $(filter $(CHECKERS),$(SELF_TESTS)),failed)
# Without the pool, which would hand out used memory inside of large segments and so hide overruns.
RUN_ASAN_TESTS = $(call run_tests,C tests under ASan and UBSan,$(ASAN_TESTS),failed,\
    PVG_TEST_ALLOCATOR=direct)
# Each launch saves all of the card's memory: what is about the host's would take minutes.
RUN_ORDER_TESTS = $(call run_tests,C tests in both thread orders,\
    $(filter-out %_host_memory,$(SIM_TESTS)),failed,\
    PVG_TEST_ALLOCATOR=direct PVG_TEST_SIM_CHECK_ORDER=1)
RUN_WATCH_TESTS = $(call run_tests,C tests with every access checked,$(WATCH_TESTS),failed,\
    PVG_TEST_SIM_GUARD=1)
RUN_RACE_TESTS = $(call run_tests,C tests under ThreadSanitizer,$(TSAN_TESTS),failed)

ctest: $(GPU_TESTS) $(SIM_TESTS)  ## the C tests (build/tests) on the GPU and on the simulated card
	$(RUN_GPU_TESTS)
	$(RUN_SIM_TESTS)
test-sim: $(SELF_TESTS)    ## the simulator's tests of itself
	$(RUN_SELF_TESTS)
	$(RUN_CHECKED_SELF_TESTS)
test-asan: $(ASAN_TESTS)   ## the C tests on the simulated card under AddressSanitizer and UBSan
	$(RUN_ASAN_TESTS)
test-order: $(SIM_TESTS)   ## the C tests with every launch run forwards and backwards and compared
	$(RUN_ORDER_TESTS)
test-watch: $(WATCH_TESTS) ## the C tests with every access of a kernel checked (watch.cpp)
	$(RUN_WATCH_TESTS)
test-races: $(TSAN_TESTS)  ## C tests of most kinds of kernels, watched by ThreadSanitizer
	$(RUN_RACE_TESTS)
# One recipe, so that the parts run one after another and pytest's closing line is the last.
BINARIES := $(GPU_TESTS) $(SIM_TESTS) $(TSAN_TESTS) $(filter-out $(CHECKERS),$(SELF_TESTS))
BINARIES += build/tests/sim/soak # what the gates count with, which a test tries
CHECKED_BINARIES := $(SIM_TESTS) $(ASAN_TESTS) $(WATCH_TESTS) $(filter $(CHECKERS),$(SELF_TESTS))
CHECKED_BINARIES += $(TSAN) # whose kernels the access checker's are, in copies with planted bugs
# PARTS: how many processes share the tests in Python; a number, by default one for each core. What
# takes twenty minutes more, test-checkers has; random programs both have, of which it draws most.
FEW_PROGRAMS := PVG_TEST_PROGRAMS=$${PVG_TEST_PROGRAMS:-4000}
test: $(COMPILER) $(PYTHON_TESTS) lib sim $(BINARIES)  ## the tests (ARGS= to pytest)
	$(RUN_GPU_TESTS)
	$(RUN_SIM_TESTS)
	$(RUN_SELF_TESTS)
	$(RUN_RACE_TESTS)
	$(FEW_PROGRAMS) $(PYTHON) tests/parts.py $(PARTS) tests -m 'not checkers' $(ARGS)
CHECKED_NEED := $(COMPILER) $(PYTHON_TESTS) lib sim sim-asan $(CHECKED_BINARIES)
test-checkers: $(CHECKED_NEED)  ## C tests under every checker, planted bugs, more programs
	$(RUN_CHECKED_SELF_TESTS)
	$(RUN_ASAN_TESTS)
	$(RUN_ORDER_TESTS)
	$(RUN_WATCH_TESTS)
	$(PYTHON) tests/parts.py $(PARTS) tests -m 'checkers or programs' $(ARGS)
# The planted bugs are found on the simulated card alone, so they are left out here. A test reads
# the names in all objects.
GPU_TESTS_NEED := $(PYTHON_TESTS) lib sim $(PASS_OBJECTS) $(GPU_TESTS) build/tests/soak
test-gpu: $(GPU_TESTS_NEED)  ## the tests that need a GPU; one skipped fails
	$(call run_tests,C tests on the GPU,$(GPU_TESTS),failed,,1)
	$(PYTHON) tests/parts.py $(or $(PARTS),1) tests --ignore=tests/plants \
	    --device cuda --require-gpu $(ARGS)

# What tests do not notice: tests/mutants. The kernels for newer cards need one, and AREA=sm90.
N ?= 300
SEED ?= 1
MUTANTS_NEED := $(if $(filter sm90,$(AREA)),$(GPU_TESTS),\
    $(SIM_TESTS) $(SELF_TESTS) $(ASAN_TESTS) $(TSAN_TESTS))
mutants: lib sim $(MUTANTS_NEED) $(PYTHON_TESTS)  ## draw mistakes that tests must notice (N=)
	PYTHONPATH=tests $(PYTHON) -m mutants --n $(N) --seed $(SEED) --area '$(AREA)' $(ARGS)
# A quarter of the time each: calls from C, the same under AddressSanitizer, those that libFuzzer
# chooses (build/corpus has what it keeps), programs in Python. libFuzzer comes with clang; what it
# watches is compiled by g++ like all else.
SECONDS ?= 600
FUZZ_SECONDS = $(shell expr $(SECONDS) / 4)
CLANG ?= clang
CLANG_RUNTIME = $(shell $(CLANG) -print-runtime-dir 2>/dev/null)
LIBFUZZER = $(firstword $(wildcard $(addprefix $(CLANG_RUNTIME)/libclang_rt.fuzzer,.a \
    -$(shell uname -m).a)))
FUZZERS := build/tests/sim/fuzz build/tests/asan/fuzz
GUIDED := build/tests/guided/fuzz_guided
-include $(wildcard $(FUZZERS:=.d) $(GUIDED).d)
$(GUIDED).o: cuda/tests/fuzz_guided.c build/guided/flags
	@mkdir -p $(@D) && echo 'cc   $@'
	$(Q)$(CC) $(TEST_FLAGS) $(ON_SIMULATOR) $(SANITIZERS) -g1 -O1 -MMD -MP -MF $(GUIDED).d -c $< -o $@
$(GUIDED): $(GUIDED).o $(GUIDED_OBJECTS)
	@test -n '$(LIBFUZZER)' || { echo "make: no libFuzzer; install clang (libclang-rt)" >&2; exit 1; }
	@echo 'link $@'
	$(Q)$(CXX) $(SANITIZERS) $(filter %.o,$^) $(LIBFUZZER) $(OLDER_GLIBC) \
	    -Wl,--wrap=__sanitizer_cov_trace_pc -pthread -o $@
fuzz-guided: $(GUIDED)  ## random calls that libFuzzer chooses (SECONDS=)
	@mkdir -p build/corpus
	$(TEST_ENVIRONMENT) $(GUIDED) -max_total_time=$(SECONDS) -max_len=2000 -len_control=0 \
	    -entropic=0 -artifact_prefix=build/ $(ARGS) build/corpus
fuzz: lib $(FUZZERS) $(PYTHON_TESTS)  ## random calls and programs (SECONDS=)
	build/tests/sim/fuzz $(FUZZ_SECONDS)
	$(TEST_ENVIRONMENT) build/tests/asan/fuzz $(FUZZ_SECONDS)
	$(if $(LIBFUZZER),$(MAKE) fuzz-guided SECONDS=$(FUZZ_SECONDS) ARGS=,\
	    @echo 'no libFuzzer here (it comes with clang), so no calls that it chooses')
	PYTHONPATH=.:tests $(PYTHON) tests/fuzz.py --seconds $(FUZZ_SECONDS) $(ARGS)

# The gates of a release that count to large numbers: tests/gates. The same command goes on where
# it was ended; DEVICE=cuda on a card.
GATES ?= R5 R6 R8 R9
DEVICE ?= sim
GATES_FILE ?= build/gates-$(DEVICE).json
GATES_NEED := $(if $(filter cuda,$(DEVICE)),lib build/tests/soak,sim build/tests/sim/soak)
GATES_NEED += $(if $(filter R3,$(GATES)),$(if $(filter sim,$(DEVICE)),$(FUZZERS) $(GUIDED)))
GATES_NEED += $(if $(filter R14,$(GATES)),$(if $(filter sim,$(DEVICE)),$(BINARIES) \
    $(CHECKED_BINARIES)))
-include $(wildcard build/tests/soak.d build/tests/sim/soak.d)
gates: $(GATES_NEED) $(PYTHON_TESTS)  ## gates of a release (GATES="R5 R9", DEVICE=cuda, SECONDS=)
	PYTHONPATH=.:tests $(PYTHON) -m gates $(GATES) --device $(DEVICE) --seconds $(SECONDS) \
	    --json $(GATES_FILE) $(ARGS)

# Which lines of the host code the tests run: an hour. The tests in Python load that build. And
# what gcc's analyzer says of files without kernels, each in a text.
COVERAGE_TESTS := $(C_TESTS:%=build/tests/coverage/%)
-include $(wildcard $(COVERAGE_TESTS:=.d))
ANALYZED := $(HOST_ONLY:cuda/%.cu=build/analyzed/%.txt)
-include $(wildcard $(ANALYZED:=.d))
build/analyzed/%.txt: cuda/%.cu build/sim/flags build/sim/prelude.h.gch
	@mkdir -p $(@D) && echo 'analyze $<'
	$(Q)$(CXX) $(SIM_FLAGS) -Wno-error -O1 -fanalyzer -MMD -MP -MF $@.d -MT $@ -c \
	    -include build/sim/prelude.h -x c++ $< -o /dev/null 2>$@.new && mv $@.new $@
COVERAGE_NEEDS := $(COVERAGE_TESTS) $(SIM_TESTS) $(ANALYZED) $(PYTHON_TESTS)
coverage: $(COVERAGE_NEEDS)  ## lines of the host code that tests run (gcov), and R12
	find build/coverage -name '*.gcda' -delete
	$(call run_tests,C tests whose lines are counted,$(COVERAGE_TESTS),failed)
	-PYVECGPU_SIM_LIBRARY=$(abspath $(COVERAGE)) $(PYTHON) tests/parts.py $(PARTS) tests \
	    --device sim -q -W ignore:PYVECGPU_SIM_LIBRARY -m 'not checkers' \
	    --ignore=tests/mutants $(ARGS)
	PYTHONPATH=.:tests $(PYTHON) -m gates R12 --json $(GATES_FILE)

# The array API standard's own tests, of a checkout of github.com/data-apis/array-api-tests with its
# submodule: SUITE. tests/conformance has what is expected to fail.
DEVICES ?= cpu sim
conformance: sim $(PYTHON_CONFORMANCE)  ## array-api-tests (SUITE= its checkout, DEVICES=cpu)
	@test -n '$(SUITE)' || { echo 'make: SUITE= names no checkout of array-api-tests' >&2; exit 1; }
	$(PYTHON) tests/conformance/run.py '$(SUITE)' --device $(DEVICES) $(ARGS)

demo: $(COMPILER) $(PYTHON_RUNTIME) lib sim  ## train a network that reads digits (ARGS=)
	$(PYTHON) -m pyvecgpu demo $(ARGS)
bench: $(PYTHON_RUNTIME) lib     ## measure on the GPU: ARGS="streaming --peers torch,cupy"
	$(PYTHON) -m pyvecgpu bench $(ARGS)

# The type hints and the manual: docs/reference.
stubs: $(PYTHON_RUNTIME)   ## write the package's .pyi files, after a public signature has changed
	PYTHONPATH=. $(PYTHON) docs/reference/stubs.py
docs: $(PYTHON_DOCS)       ## build the manual, build/site/index.html (mkdocs)
	PYTHONPATH=. $(PYTHON) docs/reference/pages.py build/manual
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet \
	    --config-file build/manual/mkdocs.yml
	@echo 'build/site/index.html'

# compute-sanitizer, each tool's cases dealt to SHARDS processes that run side by side: memcheck all
# of them, the slower tools those of a plan. It must not take backtraces on the host: it keeps the
# Python frames that it finds there, and their arrays with them, which then look like leaks.
SHARDS ?= 4
SANITIZER_TOOLS := memcheck racecheck initcheck synccheck
SANITIZER_PLACES = $(dir $(NVCC_PATH)):$(CUDA_HOME)/bin:/usr/local/cuda/bin
SANITIZER = $(shell PATH="$$PATH:$(SANITIZER_PLACES)" command -v compute-sanitizer)
SANITIZER_PLAN := build/memcheck/plan.json
SHARD_NUMBERS := $(shell seq 1 $(SHARDS))
MEMCHECK_RUNS := $(foreach tool,$(SANITIZER_TOOLS),$(SHARD_NUMBERS:%=build/memcheck/$(tool).%))
memcheck: $(MEMCHECK_RUNS)  ## the sweep under memcheck, a part under three more (needs a GPU)
	@grep -h 'ERROR SUMMARY\|RACECHECK SUMMARY' $^ /dev/null | sort | uniq -c
$(SANITIZER_PLAN): $(LIB) $(PYTHON_TESTS) FORCE
	@mkdir -p $(@D)
	@PYTHONPATH=. $(PYTHON) tests/sanitize.py --make-plan $@
$(MEMCHECK_RUNS): build/memcheck/%: $(SANITIZER_PLAN)
	@[ -n "$(SANITIZER)" ] || \
	    { echo 'make: no compute-sanitizer, a part of the CUDA toolkit, on PATH' >&2; exit 1; }
	@echo 'compute-sanitizer $(subst ., ,$*)/$(SHARDS)'
	@PYTHONPATH=. $(SANITIZER) --tool $(basename $*) --show-backtrace device \
	    $(if $(filter memcheck.%,$*),--leak-check full) \
	    --error-exitcode 1 $(PYTHON) tests/sanitize.py \
	    $(if $(filter-out memcheck.%,$*),--plan $<) \
	    --shard $(patsubst .%,%,$(suffix $*))/$(SHARDS) >$@ 2>&1 || { cat $@; exit 1; }

C_FILES = $(shell find cuda -path cuda/lessons/mine -prune -o \( -name '*.[ch]' -o -name '*.cu' \
    -o -name '*.cuh' -o -name '*.cpp' \) -print)
TOO_LONG := length > 100 { print FILENAME ":" FNR ": over 100 columns"; bad = 1 } END { exit bad }
lint: $(PYTHON_LINT)    ## check formatting and style (clang-format, ruff), change nothing
	@awk '$(TOO_LONG)' $(C_FILES) Makefile cuda/*.mk
	$(Q)$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
format: $(PYTHON_LINT)  ## format the sources in place
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

clean:  ## remove what was built (.venv stays)
	rm -rf build dist $(LIB) $(SIM)
help:   ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## *\(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	    while IFS='|' read -r target text; do printf '  make %-13s %s\n' "$$target" "$$text"; done
