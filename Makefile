# Every target prepares the checkout first; that costs a second once it is done. `make help` tells what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup check test bench demo demo-down e2e-gpu images clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what work on this repository needs: Debian packages, .venv, helm, kubectl.
	@scripts/setup

check: setup ## Format, lint, types, import direction, links of the documents. About a minute.
	@scripts/check

test: setup ## Every test that needs no GPU, on a real Kubernetes built from source.
	@scripts/test

bench: setup ## Latency and cost of plugin and operator, as JSON. Half an hour; scripts/bench knows smaller runs.
	@scripts/bench

demo: setup ## A private Kubernetes node with the chart installed, a quota and servers in slices.
	@scripts/demo

demo-down: setup ## End the demo and leave nothing of it behind.
	@scripts/demo down

e2e-gpu: setup ## The tests that need a real NVIDIA GPU on this machine.
	@scripts/e2e-gpu

images: setup ## Build the container images as archives, without a registry.
	@scripts/images

clean: ## Remove .venv and the caches inside the checkout (the shared cache folder stays).
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
