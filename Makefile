# Each target sets itself up and calls one script.
.PHONY: help demo test bench soak lint fmt generate

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/: *## */\t/' | expand -t 12

demo: ## three programs in three languages mint at once, and their IDs are checked
	@scripts/demo.sh

test: ## every suite in every language
	@scripts/test.sh

bench: ## ns per ID beside floors and peers, and the service level
	@scripts/bench.sh

soak: ## the randomised tests, for half an hour
	@scripts/soak.sh

lint: ## formatting and lints; warnings fail
	@scripts/lint.sh

fmt: ## formats Rust and Python
	@cargo fmt --all
	@.venv/bin/ruff format python tests demo bench

generate: ## writes the generated files: errors.json, the vectors, frazil.h
	@FRAZIL_REGENERATE=1 cargo test -q -p frazil --test vectors error_table >/dev/null
	@python3 tests/vectors/generate.py
	@c-api/generate.sh
