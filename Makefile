# `make help` lists what there is. Everything lives in .venv; nothing else on the machine is changed, but that
# `make test` as root on Debian installs the servers that the tests talk to.

VENV   ?= .venv
PYTHON ?=
ARGS   ?=
export VENV PYTHON

bin  := $(VENV)/bin
made  = $(VENV)/.made

.DEFAULT_GOAL := help
.PHONY: help demo demo-queue demo-django test bench lint format types wheel ci clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1\t\2/p' Makefile | expand -t 20
	@echo '  Options: ARGS="..." for the program that is run, PYTHON=python3.12, VENV=folder, NO_UV=1'

demo: $(made)-demo  ## download a folder of files with four workers, one of which is killed
	$(bin)/python examples/download.py $(ARGS)

demo-queue: $(made)-demo  ## crawl a local site with a queue on its own table, and a worker that is killed
	$(bin)/python examples/crawler.py $(ARGS)

demo-django: $(made)-demo  ## a Django site, its management command, and its admin (ARGS=--serve to see it)
	$(bin)/python examples/django_demo.py $(ARGS)

# Three tests at a time, on two cores too: much of what they do is to wait.
test: $(made)-test  ## all tests, on real servers and in a browser (ARGS="-k 'redis and mixin'" for some)
	@sh scripts/servers.sh browser
	$(bin)/python -m pytest -n 3 $(ARGS)

bench: $(made)-bench  ## measure against other libraries and against bare drivers
	@sh scripts/servers.sh
	$(bin)/python -m benchmarks $(ARGS)

lint: $(made)-lint  ## ruff and the floors
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/lint-imports

format: $(made)-lint  ## let ruff put the files in order
	$(bin)/ruff check --fix .
	$(bin)/ruff format .

types: $(made)-types  ## mypy (strict) and pyright
	$(bin)/mypy
	$(bin)/basedpyright

wheel: $(made)-build  ## build dist/ and try the wheel in an empty environment
	rm -rf dist
	$(bin)/python -m build -q
	sh scripts/try_wheel.sh

ci:  ## everything that must pass before a change is taken
	CI=true bash .ci/run

clean:  ## remove what was made here
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each dependency group, so that a second run has nothing to do.
$(made):
	@sh scripts/environment.sh make
	@touch $@

$(made)-%: pyproject.toml | $(made)
	@sh scripts/environment.sh install $*
	@touch $@
