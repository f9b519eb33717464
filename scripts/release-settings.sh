# How a release is compiled, and with what, for TARGET, which is this machine unless it is given. To be read by `.` in the root of the
# repository.
scripts/release-tools.sh
TARGET=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
PATH=$PWD/build/tools/bin:$PWD/build/tools/Scripts:$PATH
# The texts of panics name source files: not by the folders of the machine that built them.
CARGO_ENCODED_RUSTFLAGS=$(printf '%s\037%s' "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" "--remap-path-prefix=$PWD=/frazil")
# A library that is loaded into a process takes that process' libc.
case $TARGET in *-linux-musl) CARGO_ENCODED_RUSTFLAGS=$(printf '%s\037%s' "$CARGO_ENCODED_RUSTFLAGS" -Ctarget-feature=-crt-static) ;; esac
export TARGET PATH CARGO_ENCODED_RUSTFLAGS
