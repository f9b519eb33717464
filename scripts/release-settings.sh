# The compiler settings and tools of a release for TARGET, which is this machine unless it is given. Source it in the root of the
# repository. LINK=static is for a program that does not need the system's libc, which musl allows.
scripts/release-tools.sh
TARGET=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
PATH=$PWD/build/tools/bin:$PWD/build/tools/Scripts:$PATH
# Panic messages name source files, without the folders of the build machine. On Windows the compiler and the shell write these folders
# differently.
native() { if command -v cygpath > /dev/null; then cygpath --windows "$1"; else echo "$1"; fi; }
CARGO_ENCODED_RUSTFLAGS=$(printf '%s\037%s' "--remap-path-prefix=$(native "${CARGO_HOME:-$HOME/.cargo}")=/cargo" \
    "--remap-path-prefix=$(native "$PWD")=/frazil")
# A library uses the libc of the process that loads it. A program may contain its own libc, which zig provides.
case $TARGET-${LINK:-} in
    *-linux-musl*-) CARGO_ENCODED_RUSTFLAGS=$(printf '%s\037%s' "$CARGO_ENCODED_RUSTFLAGS" -Ctarget-feature=-crt-static) ;;
    *-linux-musl-static) CARGO_ENCODED_RUSTFLAGS=$(printf '%s\037%s' "$CARGO_ENCODED_RUSTFLAGS" -Clink-self-contained=no) ;;
esac
# zig links its own unwinder into each library. If a thread ends (pthread_exit) or throws in our frames, two unwinders would then mix up their
# states. This replacement only has the names that Rust calls, so the library uses the unwinder of the process.
case $TARGET in
    *-linux-gnu*)
        unwinder=$PWD/build/tools/unwinder/$TARGET/libgcc_s.so.1
        if [ ! -e "$unwinder" ]; then
            mkdir -p "${unwinder%/*}"
            printf 'void _Unwind_%s(void) {}\n' Backtrace DeleteException FindEnclosingFunction GetCFA GetDataRelBase GetIP GetIPInfo \
                GetLanguageSpecificData GetRegionStart GetTextRelBase RaiseException Resume SetGR SetIP > "$unwinder.c"
            # On 32-bit ARM, these names replace some of them.
            printf 'void %s(void) {}\n' _Unwind_Complete _Unwind_VRS_Get _Unwind_VRS_Set __gnu_unwind_frame \
                __aeabi_unwind_cpp_pr0 __aeabi_unwind_cpp_pr1 __aeabi_unwind_cpp_pr2 >> "$unwinder.c"
            zig=$(echo "$TARGET" | sed 's/^armv7/arm/; s/-unknown//')
            python-zig cc -target "$zig" -shared -nostdlib -Wl,-soname,libgcc_s.so.1 -o "$unwinder.new" "$unwinder.c"
            mv "$unwinder.new" "$unwinder"
        fi
        CARGO_ENCODED_RUSTFLAGS=$(printf '%s\037%s' "$CARGO_ENCODED_RUSTFLAGS" "-Clink-arg=$unwinder")
        ;;
esac
# rustc strips a linked library for macOS with LLVM's objcopy, which may put its string table at an odd multiple of four. macOS 27 refuses such a
# library (https://github.com/rust-lang/rust/issues/157750), so the linker omits the local symbols and nothing strips afterwards.
case $TARGET in
    *-apple-*)
        export CARGO_PROFILE_RELEASE_STRIP=none
        CARGO_ENCODED_RUSTFLAGS=$(printf '%s\037%s' "$CARGO_ENCODED_RUSTFLAGS" -Clink-arg=-Wl,-x,-S)
        ;;
esac
# Verifying a server's certificate calls a function that macOS has since 10.14; Rust's minimum is 10.12.
case $TARGET in x86_64-apple-*) export MACOSX_DEPLOYMENT_TARGET=10.14 ;; esac
# The time of every file in an archive, so that two builds of one commit are equal. A copy of the tree has no history.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || true)}
export TARGET PATH CARGO_ENCODED_RUSTFLAGS SOURCE_DATE_EPOCH
