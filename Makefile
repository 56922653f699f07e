# Every verb does its own set-up: `make demo` and `make test` work from a fresh clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# RLlib wants a Gymnasium of its own.
RLLIB := .rivals/rllib
# Extra options for pytest, as in: make test PYTEST_ARGS="-x --durations=20"
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install install-browser docs lint types test test-parallel test-alone test-slow test-harm test-pythons demo documents test-ray bench-accuracy bench-cluster bench-device bench-explain bench-forecast bench-live bench-loops bench-optimize bench-profile bench-record bench-scale bench-speed \
	bench-fighter bench-ninja bench-trader clean

help:  ## show these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## make .venv with everything for development

# torch comes first and through the constraints, so that no other version is ever fetched.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	touch $@

install-browser:  ## Chromium of Debian, for tests of pages; without it they are skipped
	command -v chromium >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core; }

lint: install  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install  ## mypy, strict
	$(BIN)/mypy

# mypy needs one core for a minute, in which tests wait much of their time: both run at once.
BESIDE := $(VENV)/types.log
SEQUENCE := lint test-parallel test-alone

test: install  ## everything that CI runs first, and how long each part took
	@$(MAKE) --no-print-directory types > $(BESIDE) 2>&1 & types=$$!; \
	for part in $(SEQUENCE); do \
		begin=$$(date +%s); \
		$(MAKE) --no-print-directory $$part || failed=$$part; \
		times="$$times$$(printf '%-14s %5d s|' $$part $$(($$(date +%s) - begin)))"; \
		test -z "$$failed" || break; \
	done; \
	wait $$types || failed="$$failed types"; \
	cat $(BESIDE); \
	echo "$$times" | tr '|' '\n'; \
	test -z "$$failed" || { echo "failed: $$failed"; exit 1; }

# Many tests compare with what the kernel says of real processes, on machines that others share. What
# fails is run once more with nothing beside it: what fails twice has failed, and both runs are shown.
define tested
	$(1)/bin/python -m pytest -m '$(2)' $(3) $(PYTEST_ARGS) || { test $$? -eq 1 || exit 1; \
	echo 'What failed is run once more, alone:'; \
	$(1)/bin/python -m pytest -m '$(2)' -v --last-failed --last-failed-no-failures none $(PYTEST_ARGS); }
endef
TWO_AT_A_TIME := -n 2 --dist loadfile

test-parallel: install  ## tests that may run two at a time
	$(call tested,$(VENV),not slow and not alone,$(TWO_AT_A_TIME))

test-alone: install  ## tests that plan within limits of time
	$(call tested,$(VENV),alone and not slow)

# What is compared with no measured run may go on beside another file: pages of docs beside reports.
test-slow: install  ## whole programs of the reference systems, which make test leaves out
	$(call tested,$(VENV),slow and not truth and not alone,$(TWO_AT_A_TIME))
	$(call tested,$(VENV),slow and (truth or alone))

test-harm: install  ## faults around trainings, explanations, fuzzing: nothing may come to harm (an hour)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt jax
	for stage in faults explanations fuzz table; do \
		$(BIN)/python -m benchmarks.harm $$stage || exit 1; \
	done

test-ray: install  ## real clusters of Ray on loopback, which is installed for it (ten minutes)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest tests/integrations/ray -m 'slow or not slow' $(PYTEST_ARGS)

# Other interpreters, by name or where pyenv keeps them. A name may stand for none that works.
PYTHONS := 3.12 3.13
PYENV_ROOT ?= $(HOME)/.pyenv
found = $(shell for python in python$(1) $(PYENV_ROOT)/versions/$(1).*/bin/python$(1); do \
	if $$python -c '' 2>/dev/null; then echo $$python; break; fi; done)
HERE = $(foreach version,$(PYTHONS),$(if $(call found,$(version)),$(version)))

test-pythons: $(addprefix test-python-,$(HERE))  ## what needs no torch, on other interpreters that are here
	@echo "ran on: $(or $(HERE),no other Python than $(PYTHON), since none of $(PYTHONS) is here)"

test-python-%: $(VENV)-%/.installed
	$(call tested,$(VENV)-$*,not slow and not truth and not alone,$(TWO_AT_A_TIME))

.PRECIOUS: $(VENV)-%/.installed
$(VENV)-%/.installed: pyproject.toml
	test -x $(@D)/bin/python || $(call found,$*) -m venv $(@D)
	$(@D)/bin/python -m pip install --disable-pip-version-check -e '.[dev,compression,watch,serve]'
	touch $@

docs: install  ## build the site into build/site, with warnings as errors
	rm -rf build/site
	$(BIN)/python -m docs.builder build/site

demo: install  ## plan and run a real training: predicted beside measured, fixes, before and after
	mkdir -p build
	$(BIN)/memfit demo --report build/demo.html

SYSTEMS := drone fighter ninja trader

documents: install  ## measure the reference systems and write docs/systems/measured (long)
	for system in $(SYSTEMS); do $(BIN)/memfit demo $$system -o docs/systems/measured || exit 1; done

bench-accuracy: install  ## predicted against measured peaks over many configurations (long)
	for stage in truth plan probe baselines table; do \
		$(BIN)/python -m benchmarks.accuracy $$stage || exit 1; \
	done

bench-cluster: install  ## a study within a limit, beside the same with a worst-case share for all (long)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[ray]'
	for stage in asks fit worst alone ray-fit ray-worst ray-kill table; do \
		$(BIN)/python -m benchmarks.cluster $$stage || exit 1; \
	done

bench-device: install  ## memory on cards of others, published and recorded, beside what is predicted (long)
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --target .rivals -r benchmarks/device/transformers.txt
	$(BIN)/python -m benchmarks.device

bench-explain: install  ## explanations of live processes: sums, names, a thousand of them, 20 GB
	for stage in processes inside systems thousand large table; do \
		$(BIN)/python -m benchmarks.explain $$stage || exit 1; \
	done

bench-forecast: install  ## forecasts of synthetic and recorded runs: told right, and within their intervals
	$(BIN)/python -m benchmarks.forecast

bench-live: bench-forecast  ## what is told of live runs: forecasts, verdicts, holders, and at which cost
	for stage in systems never programs large table; do \
		$(BIN)/python -m benchmarks.live $$stage || exit 1; \
	done

bench-loops: install  ## plans of any training loop against measured runs, libraries included (long)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -r benchmarks/loops/libraries.txt
	for stage in truth twice plan whatif; do \
		$(BIN)/python -m benchmarks.loops $$stage || exit 1; \
	done
	test -x $(RLLIB)/bin/python || $(PYTHON) -m venv $(RLLIB)
	$(RLLIB)/bin/python -m pip install --disable-pip-version-check -q -r benchmarks/loops/rllib.txt -e .
	for stage in truth plan; do \
		$(RLLIB)/bin/python -m benchmarks.loops $$stage --only rllib || exit 1; \
	done
	$(BIN)/python -m benchmarks.loops table

bench-optimize: install  ## fixes of memfit optimize: predicted against measured savings (long)
	for stage in run table; do \
		$(BIN)/python -m benchmarks.optimize $$stage || exit 1; \
	done

bench-record: install  ## recording: its cost, kills at random moments, the guard, a sweep (long)
	for stage in kills guard sweep cost table; do \
		$(BIN)/python -m benchmarks.record $$stage || exit 1; \
	done

bench-scale: install  ## how many agents fit, as described and made to fit, up to a million (long)
	for stage in slopes learning million table; do \
		$(BIN)/python -m benchmarks.scale $$stage || exit 1; \
	done

bench-speed: install  ## parts that make it fit: bytes and times beside those they replace (long)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt ale-py opencv-python-headless
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --target .rivals -r benchmarks/speed/rivals.txt
	$(BIN)/python -m benchmarks.speed all

bench-fighter: install  ## the fighter system: peaks and learning (long)
	for stage in emulator moments peaks learning whole table; do \
		$(BIN)/python -m benchmarks.fighter $$stage || exit 1; \
	done

FILMS := moviepy==2.2.1 imageio imageio-ffmpeg proglog python-dotenv decorator tqdm pillow

bench-profile: install  ## verdicts on environments that leak and that do not, beside other tests (long)
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps --target .rivals/moviepy $(FILMS)
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps --target .rivals/gymnasium-1.2.0 gymnasium==1.2.0 $(FILMS)
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps --target .rivals/box2d box2d==2.3.10
	for stage in verdicts truths spread rivals real overhead table; do \
		$(BIN)/python -m benchmarks.leaks $$stage || exit 1; \
	done

bench-ninja: install  ## the ninja system: what an environment costs, changes alone, learning (long)
	for stage in costs without workers training profiler learning table; do \
		$(BIN)/python -m benchmarks.ninja $$stage || exit 1; \
	done

bench-trader: install  ## the trader system: peaks, growth, threads, a study, learning (long)
	for stage in peaks growth threads study learning table; do \
		$(BIN)/python -m benchmarks.trader $$stage || exit 1; \
	done

clean:  ## remove each .venv, caches and build output
	rm -rf $(VENV) $(VENV)-* .rivals build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
