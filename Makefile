# Everything runs in .venv, which the first command makes from requirements.lock.

PYTHON_RUN := .venv/bin/python
TRACE ?=
SIM ?= verilator
WIDTH ?= 64
SEED ?= 1
LOSS ?= 0
DUP ?= 0
REORDER ?= 0
CORRUPT ?= 0
WAVES ?=
JOBS ?= 2
OPS ?= 20000
ENDS ?= hardware
SCRIPT ?=
TESTS ?=
PROOFS ?=

export TRACE SCRIPT

.PHONY: help sim test soak replay bench formal lint verilog clean setup

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "make sim takes TRACE=file.csv, WIDTH=64|128|256|512, SIM=verilator|icarus, SEED=n, WAVES=1,"
	@echo "  LOSS=0..1, DUP=0..1, REORDER=0..1, CORRUPT=0..1."
	@echo "make soak takes OPS=20000, ENDS=hardware|mixed|models, WIDTH, SEED."
	@echo "make replay takes SCRIPT=file, which may be the name of a case of models/xoe/cases.py, ENDS, WIDTH, SEED."
	@echo "make test takes TESTS=tb/test_cam.py to run a part, JOBS=n to run n at a time, SEED=n, WAVES=1."
	@echo "make formal takes PROOFS=queue to try a part, JOBS=n."

sim: setup ## run a workload over two NICs and check every byte against the golden models
	@$(PYTHON_RUN) -m xoe_sim --sim "$(SIM)" --width "$(WIDTH)" --seed "$(SEED)" \
		--loss "$(LOSS)" --dup "$(DUP)" --reorder "$(REORDER)" --corrupt "$(CORRUPT)" \
		$(if $(TRACE),--trace "$$TRACE") $(if $(filter-out 0,$(WAVES)),--waves)

test: setup ## run all tests: models, blocks, NIC
	@$(PYTHON_RUN) -m pytest -n $(JOBS) --maxschedchunk 1 $(TESTS)

soak: setup ## any number of operations between two NICs, with faults on the way and resets, each checked
	@$(PYTHON_RUN) -m xoe_sim.soak --ops "$(OPS)" --ends "$(ENDS)" --width "$(WIDTH)" --seed "$(SEED)"

replay: setup ## run a script of commands and faults
	@$(PYTHON_RUN) -m xoe_sim.replay --ends "$(ENDS)" --width "$(WIDTH)" --seed "$(SEED)" "$$SCRIPT"

bench: setup ## measure how much gets through links that lose frames: a table, a plot and a JSON file in build/bench
	@$(PYTHON_RUN) -m xoe_sim.goodput --seed "$(SEED)" --jobs "$(JOBS)"

formal: setup ## prove what is claimed of the hardware, and that the proofs catch broken copies of it
	@$(PYTHON_RUN) -m xoe_formal --jobs $(JOBS) $(PROOFS)

lint: setup ## check style, format and the models' types
	@$(PYTHON_RUN) -m ruff check .
	@$(PYTHON_RUN) -m ruff format --check .
	@$(PYTHON_RUN) -m mypy

verilog: setup ## write the NIC at 64 and 512 bits to build/verilog
	@$(PYTHON_RUN) -m xoe_hdl --data-width 64 --output build/verilog
	@$(PYTHON_RUN) -m xoe_hdl --data-width 512 --output build/verilog

clean: ## remove all that was built, and .venv
	rm -rf build .venv .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@sim/bootstrap
