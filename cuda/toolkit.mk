# The CUDA toolkit: nvcc 13.0 or newer from $NVCC, PATH, $CUDA_HOME or /usr/local/cuda, else
# NVIDIA's five wheels in .venv, which need no driver and no root. What is asked of nvcc is asked in
# recipes, when the wheels are in place, and once: such a variable replaces itself by its value.

once = $(eval $(1) := $(2))$($(1))

# NVIDIA pins none of them to the others: nvcc alone would pull in a newer ptxas that it cannot use.
TOOLKIT_WHEELS := nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85

release_of = $(shell $(1) --version 2>/dev/null | sed -n 's/.*release .*, V//p')
is_new_enough = $(shell test 0$(firstword $(subst ., ,$(call release_of,$(1)))) -ge 13 && echo yes)
NVCC_PLACES := $(or $(NVCC),$(shell command -v nvcc) \
    $(wildcard $(CUDA_HOME:%=%/bin/nvcc) /usr/local/cuda/bin/nvcc))
SYSTEM_NVCC := $(firstword $(foreach place,$(NVCC_PLACES),\
    $(if $(call is_new_enough,$(place)),$(place))))
nvcc_of = $(wildcard $(shell $(1) -c 'from importlib.metadata import distribution; \
    print(distribution("nvidia-cuda-nvcc").locate_file("nvidia/cu13/bin/nvcc"))' 2>/dev/null))
# An interpreter that has none (pip's own, which builds a wheel) takes the one that make installed.
WHEEL_NVCC = $(or $(call nvcc_of,$(PYTHON)),\
    $(if $(wildcard .venv/toolkit.stamp),$(call nvcc_of,.venv/bin/python)))
NVCC_PATH = $(call once,NVCC_PATH,$(or $(SYSTEM_NVCC),$(WHEEL_NVCC)))
TOOLKIT_RELEASE = $(call once,TOOLKIT_RELEASE,$(call release_of,$(NVCC_PATH)))

# The wheels keep libraries in lib, where their own nvcc does not look; elsewhere -L does no harm.
TOOLKIT_INCLUDE = $(shell $(NVCC_PATH) --dryrun -E -x cu /dev/null 2>&1 | \
    sed -n 's/^\#$$ INCLUDES="-I\([^"]*\)".*/\1/p')
CUDA_INCLUDE = $(call once,CUDA_INCLUDE,$(realpath $(TOOLKIT_INCLUDE)))
CUDA_LIB = $(CUDA_INCLUDE)/../lib

# What has to be in place before nvcc is asked anything.
ifneq ($(SYSTEM_NVCC),)
TOOLKIT :=
else ifneq ($(NVCC),)
TOOLKIT := missing-nvcc
else ifeq ($(PYTHON),.venv/bin/python)
TOOLKIT := .venv/toolkit.stamp
else ifneq ($(WHEEL_NVCC),)
TOOLKIT :=
else
TOOLKIT := missing-nvcc
endif

# A compiler for the host is looked for before anything is downloaded.
COMPILER := $(if $(shell command -v $(firstword $(CXX))),,missing-compiler)

.PHONY: missing-compiler missing-nvcc toolkit-wheels
toolkit-wheels:  # for the wheel's build hook: what pip has to install beforehand
	@echo '$(if $(TOOLKIT),$(if $(NVCC),,$(TOOLKIT_WHEELS)))'
missing-compiler:
	@echo 'make: there is no C++ compiler ($(CXX)) on PATH; on Debian and Ubuntu:' \
	    'sudo apt-get install g++' >&2
	@exit 1
missing-nvcc:
	@echo 'make: no nvcc 13.0 or newer in: $(or $(NVCC),PATH CUDA_HOME /usr/local/cuda $(PYTHON)).' \
	    'Set NVCC to one, or leave NVCC and PYTHON unset: make then installs it into .venv.' >&2
	@exit 1
.venv/toolkit.stamp: cuda/toolkit.mk | $(COMPILER) .venv/bin/python
	@echo 'pip install $(TOOLKIT_WHEELS)  (105 MB)'
	@$(INSTALL) $(TOOLKIT_WHEELS) || { echo 'make: pip could not install nvcc; without a network,' \
	    'install the CUDA toolkit, 13.0 or newer, and set NVCC to its nvcc' >&2; exit 1; }
	@touch $@

# Architectures: numbers as in sm_90a, and ptx75 for PTX of that one, which a newer GPU's driver
# compiles when it loads it. By default those of the GPUs that are there, where nvcc knows them.
DEFAULT_ARCHS := 80 90a ptx75
ifeq ($(ARCHS),all)
WANTED_ARCHS := 75 80 90a 100 120 ptx75
else
LOCAL_ARCHS = $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | \
    sed -n 's/^\([0-9]*\)\.\([0-9]\)$$/\1\2/p' | sort -u | sed 's/^90$$/90a/')
WANTED_ARCHS = $(call once,WANTED_ARCHS,$(or $(ARCHS),$(LOCAL_ARCHS),$(DEFAULT_ARCHS)))
endif
KNOWN_ARCHS = $(call once,KNOWN_ARCHS,$(patsubst compute_%,%,$(shell $(NVCC_PATH) --list-gpu-arch)))
arch_number = $(patsubst %f,%,$(patsubst %a,%,$(1:ptx%=%)))
is_known_arch = $(filter $(call arch_number,$(1)),$(KNOWN_ARCHS))
known_archs = $(strip $(foreach arch,$(1),$(if $(call is_known_arch,$(arch)),$(arch))))
ARCHITECTURES = $(call once,ARCHITECTURES,$(or \
    $(call known_archs,$(WANTED_ARCHS)),$(call known_archs,$(DEFAULT_ARCHS))))
UNSUPPORTED_ARCHS = $(filter-out $(ARCHITECTURES),$(WANTED_ARCHS))
# $(call gencode,ARCH[,OTHER]): the code for it, of the PTX for another where that is named
gencode = -gencode arch=compute_$(or $(2),$(1:ptx%=%)),code=$(if \
    $(filter ptx%,$(1)),compute,sm)_$(1:ptx%=%)
GENCODE = $(foreach arch,$(ARCHITECTURES),$(call gencode,$(arch)))
