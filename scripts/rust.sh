# Finds a cargo that can build frazil; to be read by `.` in the checkout's folder.

# Puts the first cargo of PATH that is new enough, or else rustup's, first in PATH, and tells where another one was passed over. Debian's
# is too old, and comes first in the PATH of CMake and of many IDEs.
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
