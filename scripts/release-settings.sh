# How a release is compiled, for TARGET, which is this machine unless it is given. To be read by `.` in the root of the repository.
TARGET=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
PATH=$PWD/build/tools/bin:$PATH
# The texts of panics name source files: not by the folders of the machine that built them.
RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/frazil"
# A library that is loaded into a process takes that process' libc.
case $TARGET in *-linux-musl) RUSTFLAGS="$RUSTFLAGS -C target-feature=-crt-static" ;; esac
CARGO_PROFILE_RELEASE_STRIP=symbols
export TARGET PATH RUSTFLAGS CARGO_PROFILE_RELEASE_STRIP
