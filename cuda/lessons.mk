# The lessons, and the solutions of their exercises: stand-alone programs, built side by side and
# run one after another, so that no measurement disturbs another one.
#
# On a GPU nvcc compiles a program with the flags of the nvcc line in its own head. For the
# simulated card its launches are translated (cuda/simulator/translate.py), and g++ compiles what
# comes out. LESSONS_LOG=FILE keeps what the lessons print (docs/measured/README.md).

# NAME=03 takes one lesson by how its name begins, NAME=mine/03 a reader's own copy of it.
LESSONS := $(patsubst cuda/lessons/%.cu,%,$(if $(NAME),$(wildcard cuda/lessons/$(NAME)*.cu),\
    $(sort $(wildcard cuda/lessons/*.cu)) $(sort $(wildcard cuda/lessons/solutions/*.cu))))
GPU_LESSONS := $(LESSONS:%=build/lessons/gpu/%)
SIM_LESSONS := $(LESSONS:%=build/lessons/sim/%)
GPU_COUNT = $(call once,GPU_COUNT,$(shell nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU'))

build/lessons/gpu/flags: $(TOOLKIT) FORCE
	$(call keep_text,$(NVCC_PATH) $(TOOLKIT_RELEASE) $(LOCAL_ARCHS) $(shell $(CXX) --version))
flags_in_head = $(shell sed -n 's/^ \* *nvcc \(.*\) $(<F) -o .*/\1/p' $<)
build/lessons/gpu/%: cuda/lessons/%.cu build/lessons/gpu/flags
	@mkdir -p $(@D) && echo 'nvcc $<'
	$(Q)$(NVCC_PATH) $(flags_in_head) -ccbin $(CXX) -L$(CUDA_LIB) -Werror all-warnings \
	    $(WARNINGS:%=-Xcompiler %) $< -o $@

# With the access checker, which tells kernels that touch memory of the host's.
LESSON_SIMULATOR := $(filter build/watch/simulator/%,$(WATCH_OBJECTS))
LESSON_TRANSLATOR := cuda/simulator/translate.py $(wildcard cuda/simulator/*.h)
# Not for the link, as the simulator has the functions that are called. It asks addr2line for lines,
# which takes #line in DWARF 5 for that of the file compiled.
ACCESS_CALLS := -gdwarf-4 -g1 -fsanitize=thread --param tsan-distinguish-volatile=1
# A rule makes .venv's interpreter; one that was given is there already.
MADE_PYTHON := $(filter .venv/bin/python,$(PYTHON))
build/lessons/sim/%: cuda/lessons/%.cu build/watch/flags $(LESSON_SIMULATOR) $(LESSON_TRANSLATOR) \
    | $(MADE_PYTHON)
	@mkdir -p $(@D) && echo 'g++  $@'
	$(Q)$(PYTHON) cuda/simulator/translate.py $< >$@.cpp
	$(Q)$(CXX) $(SIM_FLAGS) -O2 -fopenmp -Wno-error $(ACCESS_CALLS) \
	    -include cuda/simulator/cuda_builtins.h -c $@.cpp -o $@.o
	$(Q)$(CXX) -pthread -fopenmp $@.o $(LESSON_SIMULATOR) -o $@

# $(call run_lessons,gpu or sim,title,how the names of those begin that may lack their device)
define run_lessons
@$(PYTHON) cuda/lessons/run.py --card $(1) --title '$(2)' $(3:%=--may-lack %) \
    --seconds $(SECONDS_PER_TEST) $(if $(LESSONS_LOG),--log '$(LESSONS_LOG)' \
    $(if $(filter gpu,$(1)),--toolkit '$(TOOLKIT_RELEASE)')) $(LESSONS:%=build/lessons/$(1)/%)
endef
ONE_GPU_LACKS = $(if $(filter 1,$(GPU_COUNT)),20_)
SIMULATOR_LACKS := 18_ 20_

.PHONY: lessons lessons-gpu lessons-sim
# By a make of its own, as what there is to build depends on the machine: only then it is asked.
lessons:                     ## the lessons in cuda/lessons, on the GPU or the simulated card
	$(if $(LESSONS),,@echo 'make: no cuda/lessons/$(NAME)*.cu' >&2; exit 1)
	+@$(MAKE) --no-print-directory lessons-$(if $(filter-out 0,$(GPU_COUNT)),gpu,sim)
lessons-gpu: $(GPU_LESSONS) | $(MADE_PYTHON)
	$(call run_lessons,gpu,lessons on the GPU,$(ONE_GPU_LACKS))
lessons-sim: $(SIM_LESSONS)  ## the lessons on the simulated card
	$(call run_lessons,sim,lessons on the simulated card,$(SIMULATOR_LACKS))
