# Each target sets itself up and calls one script. tests/run.py runs one target at a time in a checkout, and ends everything with it.
.PHONY: help demo demo-server example-django example-fastapi example-fastify-drizzle example-game-server example-nestjs-prisma check dossier evidence test try-to-break bench bench-quick trial fuzz frameworks guide soak package rehearse platforms install uninstall lint fmt generate
# Without Python, setup.sh installs it, or names what is missing.
run = command -v python3 >/dev/null || scripts/setup.sh --check && exec python3 tests/run.py
PREFIX ?= /usr/local
LIBDIR ?= lib
# LIBDIR may be given with PREFIX or without.
below = $(patsubst $(PREFIX:/=)/%,%,$(LIBDIR))

help: ## this list
	@grep -E '^[a-z-]+%?:.*##' $(MAKEFILE_LIST) | sed -E 's/%:/NAME:/; s/: *## */\t/' | expand -t 25

demo: ## three programs in three languages mint at once, one is killed, and their IDs are checked
	@$(run) demo

demo-server: ## three replicas of frazil-server and six clients, while everything around them breaks; every ID is checked
	@$(run) demo-server

example-django: ## a message board in Django, REST framework and PostgreSQL with four worker processes: http://127.0.0.1:8000
	@$(run) example django

example-fastapi: ## a message board in FastAPI, SQLAlchemy and PostgreSQL with four worker processes: http://127.0.0.1:8000
	@$(run) example fastapi

example-fastify-drizzle: ## a message board in Fastify, Drizzle and PostgreSQL with four worker processes: http://127.0.0.1:8000
	@$(run) example fastify-drizzle

example-game-server: ## two game servers in C++ and SQLite, and the merge of their databases, with and without a mistake
	@$(run) example game-server

example-nestjs-prisma: ## a message board in NestJS, Prisma and PostgreSQL with four worker processes: http://127.0.0.1:8000
	@$(run) example nestjs-prisma

check: ## the core, the command line and the Python binding, without servers: the short loop
	@$(run) check

test: ## every suite in every language; SUITE=core K=fork: one suite, or the tests of it whose names hold K
	@$(run) test "$$SUITE" "$$K"

bench: ## ns per ID beside floors and peers, the service level, and frazil-server
	@$(run) bench

bench-quick: ## the same within two minutes, once it is built: not a release's build, fewer rounds
	@$(run) bench --quick

trial: ## frazil and other libraries under forks, kills and wrong clocks: docs/trial.md
	@$(run) trial

fuzz: ## random input for the readers, MINUTES=5 for each target; needs Rust's nightly toolchain: fuzz/README.md
	@fuzz/run.sh "$${MINUTES:-5}"

frameworks: ## the adapters with the oldest frameworks that they support, every application of examples/, frazil-server's clients
	@$(run) frameworks

soak: ## the randomised tests at length: more cases, more preemptions, 30 million IDs
	@$(run) soak

package: ## what is released for this machine: wheel, npm packages, C library; installed and run in clean environments
	@$(run) package

rehearse: ## what make package has left, installed on empty Debian systems from registries on loopback; as root, on Debian
	@$(run) rehearse

platforms: ## the core, the bindings and the packages for Windows, arm64, armv7 and musl, with their tests, and those for macOS, inspected; as root, on Debian
	@tests/platforms/run.sh

guide: ## the guide as a site, with its links checked: build/guide/index.html
	@scripts/guide.sh

dossier: ## docs/assurance.md, written from the records in docs/evidence
	@python3 tests/dossier page

evidence: ## ROW=C7: runs a row of docs/assurance.md again, prints both results, and records the new one
	@python3 tests/dossier evidence "$$ROW"

try-to-break: ## attacks frazil with real processes for at most 10 minutes: forks, kills, pauses, wrong clocks; counts repeated IDs
	@c-api/build.sh --demo --lean || exit 3; python3 tests/dossier try-to-break

defect-%: ## a defect of table H in docs/assurance.md, shown on its old commit: defect-fixed
	@python3 tests/dossier defect $*

lint: ## formatting and lints; warnings fail
	@scripts/lint.sh

fmt: ## formats Rust and Python
	@scripts/fmt.sh

generate: ## writes the generated files: errors.json, frazil/lite's tables, the vectors, frazil.h, the notices
	@scripts/generate.sh

install: ## the C and C++ library, to PREFIX (/usr/local) below DESTDIR; LIBDIR=lib64, lib/x86_64-linux-gnu; LEAN=1: without the clients of servers
	@c-api/install.sh --release $(if $(LEAN),--lean) "--libdir=$(below)" "$(DESTDIR)$(PREFIX)"

uninstall: ## removes what install put there, with the same variables
	@c-api/lay_out.sh --undo "$(DESTDIR)$(PREFIX)" "$(below)"
