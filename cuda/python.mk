# The Python interpreter: $PYTHON as it is, else one in .venv, with packages installed when a target
# first needs them. A stamp file in .venv stands for each set of packages.

RUNTIME_PACKAGES := 'numpy>=2'
TEST_PACKAGES := 'pytest>=8' 'ml_dtypes>=0.5' 'nbclient>=0.10' 'nbformat>=5.10' 'ipykernel>=6.29' \
    'array_api_strict>=2.6' 'safetensors>=0.4'
# What array-api-tests asks for.
CONFORMANCE_PACKAGES := $(TEST_PACKAGES) 'hypothesis>=6.151' pytest-json-report 'ndindex>=1.8'
LINT_PACKAGES := ruff==0.17.5 clang-format==23.1.3
DOCS_PACKAGES := 'mkdocs>=1.6' 'mkdocs-material>=9.5'
TEST_PACKAGES += 'mypy>=1.13' 'pyright[nodejs]>=1.1.390' $(DOCS_PACKAGES)

ifeq ($(origin PYTHON),undefined)

PYTHON := .venv/bin/python
PYTHON_ARGUMENT :=
PYTHON_RUNTIME := .venv/runtime.stamp
PYTHON_TESTS := .venv/runtime.stamp .venv/tests.stamp
PYTHON_CONFORMANCE := .venv/runtime.stamp .venv/conformance.stamp
PYTHON_DOCS := .venv/runtime.stamp .venv/docs.stamp
PYTHON_LINT := .venv/lint.stamp
CLANG_FORMAT := .venv/bin/clang-format
INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check

.venv/bin/python:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo 'make: pyvecgpu needs Python 3.10 or newer as python3' >&2; exit 1; }
	@python3 -c 'import venv, ensurepip' 2>/dev/null || \
	    { echo 'make: python3 cannot make virtual environments; on Debian and Ubuntu:' \
	           'sudo apt-get install python3-venv' >&2; exit 1; }
	@echo 'python3 -m venv .venv'
	@python3 -m venv .venv
.venv/runtime.stamp: cuda/python.mk | .venv/bin/python
	@echo "pip install $(RUNTIME_PACKAGES)"
	@$(INSTALL) $(RUNTIME_PACKAGES) && touch $@
.venv/tests.stamp: cuda/python.mk | .venv/bin/python
	@echo "pip install $(TEST_PACKAGES)"
	@$(INSTALL) $(TEST_PACKAGES) && touch $@
.venv/conformance.stamp: cuda/python.mk | .venv/bin/python
	@echo "pip install $(CONFORMANCE_PACKAGES)"
	@$(INSTALL) $(CONFORMANCE_PACKAGES) && touch $@
.venv/docs.stamp: cuda/python.mk | .venv/bin/python
	@echo "pip install $(DOCS_PACKAGES)"
	@$(INSTALL) $(DOCS_PACKAGES) && touch $@
.venv/lint.stamp: cuda/python.mk | .venv/bin/python
	@echo "pip install $(LINT_PACKAGES)"
	@$(INSTALL) $(LINT_PACKAGES) && touch $@

else

PYTHON_ARGUMENT := $(if $(filter command line,$(origin PYTHON)), PYTHON=$(PYTHON))
PYTHON_RUNTIME := check-runtime-packages
PYTHON_TESTS := check-test-packages
PYTHON_CONFORMANCE := check-conformance-packages
PYTHON_DOCS := check-docs-packages
PYTHON_LINT := check-lint-packages
CLANG_FORMAT := clang-format

# $(call check_package,import names): one sentence instead of a traceback later on.
define check_package
@$(PYTHON) -c 'import $(1)' 2>/dev/null || { echo 'make: $(PYTHON) lacks one of: $(1).' \
    'Install them there, or leave PYTHON unset: make then sets up .venv by itself.' >&2; exit 1; }
endef
.PHONY: check-runtime-packages check-test-packages check-conformance-packages check-lint-packages \
    check-docs-packages
check-runtime-packages:
	$(call check_package,numpy)
check-test-packages:
	$(call check_package,numpy$(comma) pytest)
check-conformance-packages:
	$(call check_package,numpy$(comma) pytest$(comma) hypothesis$(comma) ndindex)
check-docs-packages:
	$(call check_package,mkdocs$(comma) material)
check-lint-packages:
	$(call check_package,ruff)
	@command -v clang-format >/dev/null || { echo 'make: clang-format is not on PATH' >&2; exit 1; }

endif
