# The Python interpreter: $PYTHON as it is, else one in .venv, with packages installed when a target
# first needs them. A stamp file in .venv stands for each set of packages.

RUNTIME_PACKAGES := 'numpy>=2'
TEST_PACKAGES := 'pytest>=8' 'ml_dtypes>=0.5' 'nbclient>=0.10' 'nbformat>=5.10' 'ipykernel>=6.29' \
    'array_api_strict>=2.6' 'safetensors>=0.4' 'hatchling>=1.27'
# What array-api-tests asks for.
CONFORMANCE_PACKAGES := $(TEST_PACKAGES) 'hypothesis>=6.151' pytest-json-report 'ndindex>=1.8'
WHEEL_PACKAGES := 'hatchling>=1.27' 'auditwheel>=6.1'
LINT_PACKAGES := ruff==0.17.5 clang-format==23.1.3
DOCS_PACKAGES := 'mkdocs>=1.6' 'mkdocs-material>=9.5'
TEST_PACKAGES += 'mypy>=1.13' 'pyright[nodejs]>=1.1.390' $(DOCS_PACKAGES)

ifeq ($(origin PYTHON),undefined)

PYTHON := .venv/bin/python
PYTHON_ARGUMENT :=
PYTHON_RUNTIME := .venv/runtime.stamp
PYTHON_TESTS := .venv/runtime.stamp .venv/tests.stamp
PYTHON_CONFORMANCE := .venv/runtime.stamp .venv/conformance.stamp
PYTHON_WHEEL := .venv/wheel.stamp
PYTHON_DOCS := .venv/runtime.stamp .venv/docs.stamp
PYTHON_LINT := .venv/lint.stamp
CLANG_FORMAT := .venv/bin/clang-format
INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check

define install
@echo "pip install $(1)"
@$(INSTALL) $(1) || { echo 'make: pip could not install these; without a network, install them' \
    'for an interpreter of your own and name it, as in: PYTHON=python3 make' >&2; exit 1; }
@touch $@
endef

.venv/bin/python:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo 'make: pyvecgpu needs Python 3.10 or newer as python3' >&2; exit 1; }
	@python3 -c 'import venv, ensurepip' 2>/dev/null || \
	    { echo 'make: python3 cannot make virtual environments; on Debian and Ubuntu:' \
	           'sudo apt-get install python3-venv' >&2; exit 1; }
	@echo 'python3 -m venv .venv'
	@python3 -m venv .venv
.venv/runtime.stamp: cuda/python.mk | .venv/bin/python
	$(call install,$(RUNTIME_PACKAGES))
.venv/tests.stamp: cuda/python.mk | .venv/bin/python
	$(call install,$(TEST_PACKAGES))
.venv/conformance.stamp: cuda/python.mk | .venv/bin/python
	$(call install,$(CONFORMANCE_PACKAGES))
.venv/wheel.stamp: cuda/python.mk | .venv/bin/python
	$(call install,$(WHEEL_PACKAGES))
.venv/docs.stamp: cuda/python.mk | .venv/bin/python
	$(call install,$(DOCS_PACKAGES))
.venv/lint.stamp: cuda/python.mk | .venv/bin/python
	$(call install,$(LINT_PACKAGES))

else

PYTHON_ARGUMENT := $(if $(filter command line,$(origin PYTHON)), PYTHON=$(PYTHON))
PYTHON_RUNTIME := check-runtime-packages
PYTHON_TESTS := check-test-packages
PYTHON_CONFORMANCE := check-conformance-packages
PYTHON_WHEEL := check-wheel-packages
PYTHON_DOCS := check-docs-packages
PYTHON_LINT := check-lint-packages
CLANG_FORMAT := clang-format

# $(call check_package,import names): one sentence instead of a traceback later on.
define check_package
@$(PYTHON) -c 'import $(1)' 2>/dev/null || { echo 'make: $(PYTHON) lacks one of: $(1).' \
    'Install them there, or leave PYTHON unset: make then sets up .venv by itself.' >&2; exit 1; }
endef
.PHONY: check-runtime-packages check-test-packages check-conformance-packages check-lint-packages \
    check-wheel-packages check-docs-packages
check-runtime-packages:
	$(call check_package,numpy)
check-test-packages:
	$(call check_package,numpy$(comma) pytest)
check-conformance-packages:
	$(call check_package,numpy$(comma) pytest$(comma) hypothesis$(comma) ndindex)
check-wheel-packages:
	$(call check_package,hatchling$(comma) auditwheel)
check-docs-packages:
	$(call check_package,mkdocs$(comma) material)
check-lint-packages:
	$(call check_package,ruff)
	@command -v clang-format >/dev/null || { echo 'make: clang-format is not on PATH' >&2; exit 1; }

endif
