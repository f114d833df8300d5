# The lessons, and the solutions of their exercises: stand-alone programs, built side by side and
# run one after another, so that no measurement disturbs another one.
#
# On a GPU nvcc compiles a program with the flags of the nvcc line in its own head. For the
# simulated card its launches are translated (cuda/simulator/translate.py), and g++ compiles what
# comes out.

LESSONS := $(patsubst cuda/lessons/%.cu,%,$(sort $(wildcard cuda/lessons/*.cu)) \
    $(sort $(wildcard cuda/lessons/solutions/*.cu)))
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

LESSON_SIMULATOR := $(filter build/sim/simulator/%,$(SIM_OBJECTS))
LESSON_TRANSLATOR := cuda/simulator/translate.py $(wildcard cuda/simulator/*.h)
# A rule makes .venv's interpreter; one that was given is there already.
build/lessons/sim/%: cuda/lessons/%.cu build/sim/flags $(LESSON_SIMULATOR) $(LESSON_TRANSLATOR) \
    | $(filter .venv/bin/python,$(PYTHON))
	@mkdir -p $(@D) && echo 'g++  $@'
	$(Q)$(PYTHON) cuda/simulator/translate.py $< >$@.cpp
	$(Q)$(CXX) $(SIM_FLAGS) -O2 -fopenmp -include cuda/simulator/cuda_builtins.h $@.cpp \
	    $(LESSON_SIMULATOR) -o $@

# $(call run_lessons,title,programs,patterns of those that may end with 77: no such device)
define run_lessons
@passed=0; absent=; failed=; \
for program in $(2); do \
    printf '\n%s\n' "$$program"; status=0; timeout $(SECONDS_PER_TEST) $$program || status=$$?; \
    case "$$status $${program##*/}" in \
    '0 '*) passed=$$((passed + 1)) ;; \
    $(3)) absent+=" $${program#build/lessons/}" ;; \
    *) failed+=" $$program (status $$status)" ;; \
    esac; \
done; \
printf '\n%s\n' "$(1): $$passed passed, $$(wc -w <<<"$$absent") without a device:$$absent"; \
[ -z "$$failed" ] || { echo "FAILED:$$failed"; exit 1; }
endef
ONE_GPU_LACKS = $(if $(filter 1,$(GPU_COUNT)),'77 20_'*,none)
SIMULATOR_LACKS := '77 18_'* | '77 19_'* | '77 20_'*

.PHONY: lessons lessons-gpu lessons-sim
# By a make of its own, as what there is to build depends on the machine: only then it is asked.
lessons:                     ## the lessons in cuda/lessons, on the GPU or the simulated card
	+@$(MAKE) --no-print-directory lessons-$(if $(filter-out 0,$(GPU_COUNT)),gpu,sim)
lessons-gpu: $(GPU_LESSONS)
	$(call run_lessons,lessons on the GPU,$(GPU_LESSONS),$(ONE_GPU_LACKS))
lessons-sim: $(SIM_LESSONS)  ## the lessons on the simulated card
	$(call run_lessons,lessons on the simulated card,$(SIM_LESSONS),$(SIMULATOR_LACKS))
