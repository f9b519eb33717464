# Finds a cargo that can build frazil. Source it in the root of the checkout.

# Moves the first cargo of PATH that is new enough, or else rustup's, to the front of PATH. Reports a cargo that is too old, such as
# Debian's, which CMake and many IDEs find first.
find_cargo() {
    minor=$(grep '^rust-version = "1\.' Cargo.toml) old=''
    minor=${minor#*\"1.}
    minor=${minor%\"}
    set -f
    IFS=:
    # shellcheck disable=SC2086
    set -- $PATH "${CARGO_HOME:-${HOME:-}/.cargo}/bin"
    unset IFS
    set +f
    for folder; do
        [ -x "$folder/cargo" ] || continue
        version=$("$folder/cargo" --version 2>/dev/null || true)
        version=${version#cargo }
        found=${version#1.}
        if [ "${found%%.*}" -ge "$minor" ] 2>/dev/null; then
            [ -z "$old" ] || echo "Building with $folder/cargo, because $old" >&2
            PATH=$folder:$PATH
            export PATH
            return
        fi
        old=${old:-"$folder/cargo is ${version:-broken}"}
    done
    old=${old:-"PATH has no cargo"}
    echo "frazil needs Rust 1.$minor or later: see rustup.rs; $old" >&2
    return 1
}
