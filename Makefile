# Each target sets itself up and calls one script.
.PHONY: help demo test bench soak package lint fmt generate

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/: *## */\t/' | expand -t 12

demo: ## three programs in three languages mint at once, one is killed, and their IDs are checked
	@scripts/demo.sh

test: ## every suite in every language
	@scripts/test.sh

bench: ## ns per ID beside floors and peers, and the service level
	@scripts/bench.sh

soak: ## the randomised tests at length: more cases, more preemptions, 30 million IDs
	@scripts/soak.sh

package: ## what is released for this machine: wheel, npm packages, C library; installed and run in clean environments
	@scripts/package.sh

lint: ## formatting and lints; warnings fail
	@scripts/lint.sh

fmt: ## formats Rust and Python
	@scripts/fmt.sh

generate: ## writes the generated files: errors.json, the vectors, frazil.h
	@scripts/generate.sh
