# Installs a release wheel in a new environment, beside what a benchmark needs. Source it with `.` in the root of the repository, with NAME
# set: bench/NAME/requirements.txt goes into build/bench-NAME, which is $venv afterwards.
venv=build/bench-$NAME
wheels=build/wheels-release
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "bench/$NAME/requirements.txt"
rm -f "$wheels"/frazil-*.whl
"$venv/bin/maturin" build --quiet --profile "$([ -n "${FRAZIL_BENCH_QUICK:-}" ] && echo demo || echo release)" --manifest-path python/Cargo.toml --out "$wheels" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/frazil-*.whl
