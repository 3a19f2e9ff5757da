# SPDX-License-Identifier: GPL-2.0
#
# For people; Kbuild is what the kernel's build reads. `make help` says what there is.

KDIR ?= /lib/modules/$(shell uname -r)/build

all: module

# Out of tree, against an existing kernel build.
module: check-kdir
	$(MAKE) -C $(KDIR) LLVM=1 M=$(CURDIR) modules

check-kdir:
	@scripts/check-kdir "$(KDIR)"

demo test figures:
	@scripts/lab $@

mutants:
	@scripts/mutants

setup:
	@scripts/lab setup

check-layers:
	@scripts/check-layers

clean:
	@rm -rf tests/host/target tests/guest/target tests/fuzz/target
	@find . -path ./.git -prune -o \( -name '*.o' -o -name '*.ko' -o -name '*.mod' \
		-o -name '*.mod.c' -o -name '.*.cmd' -o -name '*.rmeta' -o -name Module.symvers \
		-o -name modules.order -o -name bindings_generated.rs \) -type f -exec rm -f {} +

help:
	@echo 'make             build smc_rs.ko for KDIR (default: the running kernel)'
	@echo 'make demo        set everything up and show the main job in a virtual machine'
	@echo 'make test        set everything up and run all tests'
	@echo 'make figures     measure beside smc.ko and TCP'
	@echo 'make mutants     deliberate bugs (tests/mutants), each of which a test must find'
	@echo 'make setup       only the set-up: build root, guest root, kernel source'
	@echo 'make check-layers  the layer rules, by text'
	@echo 'make clean       remove what was built here (scripts/lab clean: the cache)'
	@echo 'scripts/lab help  the parts of it: kernels, single scenarios, a shell in the VM'
	@echo
	@echo 'demo, test, figures, mutants and setup need root and a Debian-like host; see README.md.'

.PHONY: all module check-kdir demo test figures mutants setup check-layers clean help
