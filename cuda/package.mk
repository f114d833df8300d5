# What leaves this folder: `make install` for C programs, `make wheel` for Python's.

.PHONY: wheel

# The installed libraries have the ABI's version in their names; those in pyvecgpu/ are loaded by
# path.
PREFIX ?= /usr/local
INSTALLED := $(addprefix build/install/,$(notdir $(LIB) $(SIM)))
INSTALLED := $(INSTALLED:%=%.$(ABI_VERSION))
$(firstword $(INSTALLED)): $(LIB)
	@mkdir -p $(@D)
	$(call link_gpu,$(@F))
$(lastword $(INSTALLED)): $(SIM_OBJECTS) build/sim/objects cuda/exports.map
	$(call link_simulator)
# $(call pkg_config,name,description)
define pkg_config
Name: $(1)
Description: $(2)
Version: $(VERSION)
Cflags: -I$(PREFIX)/include
Libs: -L$(PREFIX)/lib -l$(1)
endef
install: $(INSTALLED)  ## header, both libraries and pkg-config files below PREFIX=/usr/local
	$(file >build/install/pyvecgpu.pc,$(call pkg_config,pyvecgpu,GPU arrays and neural networks))
	$(file >build/install/pyvecgpu_sim.pc,$(call pkg_config,pyvecgpu_sim,the simulated card))
	install -D -m 644 cuda/pyvecgpu.h $(DESTDIR)$(PREFIX)/include/pyvecgpu.h
	for library in pyvecgpu pyvecgpu_sim; do \
	    versioned=lib$$library.so.$(ABI_VERSION); \
	    install -D -m 755 build/install/$$versioned $(DESTDIR)$(PREFIX)/lib/$$versioned; \
	    ln -sf $$versioned $(DESTDIR)$(PREFIX)/lib/lib$$library.so; \
	    install -D -m 644 build/install/$$library.pc \
	        $(DESTDIR)$(PREFIX)/lib/pkgconfig/$$library.pc; \
	done

# A wheel for other machines comes from the sdist and is built in a folder of its own: what was
# built for this machine stays. hatch_build.py gives it the tag of the glibc that it needs, with
# which auditwheel has to agree.
MOST_BYTES := 20000000
WHEEL_ARCHS := $(or $(ARCHS),all)
SIZES = $(PYTHON) cuda/wheel_sizes.py --wheel dist/*.whl --build build/wheel
wheel: $(PYTHON_WHEEL) $(COMPILER) $(TOOLKIT)  ## sdist and manylinux wheel, ARCHS=all, in dist/
	rm -rf build/wheel dist
	mkdir -p build/wheel
	$(PYTHON) -m hatchling build -t sdist -d dist
	tar -xzf dist/pyvecgpu-$(VERSION).tar.gz -C build/wheel --strip-components 1
	python=$$($(PYTHON) -c 'import sys; print(sys.executable)'); cd build/wheel; \
	    ARCHS='$(WHEEL_ARCHS)' PVG_WHEEL=manylinux \
	    $$python -m hatchling build -t wheel -d '$(CURDIR)/dist'
	$(PYTHON) -m auditwheel show dist/*.whl | tee build/wheel/auditwheel
	@tag=$$(echo dist/*.whl | sed 's/.*-none-\(.*\).whl/\1/'); \
	grep -q "\"$$tag\"" build/wheel/auditwheel || \
	    { echo "make: auditwheel does not agree with $$tag" >&2; exit 1; }
	@bytes=$$(stat -c %s dist/*.whl); [ $$bytes -lt $(MOST_BYTES) ] || \
	    { echo "make: the wheel has $$bytes bytes, more than $(MOST_BYTES)" >&2; exit 1; }
	$(SIZES) $(ARGS)
