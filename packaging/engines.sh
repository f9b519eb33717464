#!/usr/bin/env bash
# Lays out the C library for .NET and game engines: OUT/nuget, OUT/unity, OUT/unreal/Frazil, OUT/godot/addons/frazil.
# usage: packaging/engines.sh OUT TARGET=PREFIX...
#   PREFIX is an unpacked release archive, or the prefix of a `make install`; TARGET is its triple: x86_64-unknown-linux-gnu
# It needs Mono's mcs, and cc for Godot. For other platforms it needs python-zig, which scripts/release-tools.sh installs.
set -euo pipefail
[ $# -ge 2 ] || { echo 'usage: packaging/engines.sh OUT TARGET=PREFIX...' >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
# The same name as in c-api/build.rs.
abi=${version%%.*}
[ "$abi" != 0 ] || abi=${version%.*}
notices=$root/THIRD-PARTY-NOTICES.txt
nuget=$out/nuget/layout unity=$out/unity unreal=$out/unreal/Frazil godot=$out/godot/addons/frazil
rm -rf "$out"/{nuget,unity,unreal,godot}

put() { # FILE PLACE: a file, not a link
    install -D -m 644 "$1" "$2"
}
fill() { # TEMPLATE PLACE
    mkdir -p "$(dirname "$2")"
    sed "s|@VERSION@|$version|; s|@ABI@|$abi|" "$root/packaging/$1" > "$2"
}
licence() { # PLACE
    { printf 'frazil is licensed under the MIT license or the Apache License 2.0, at your option.\n\n'
        cat "$root/LICENSE-MIT" && echo && cat "$root/LICENSE-APACHE"; } > "$1"
}
meta() { # TEMPLATE ASSET [SED-SCRIPT]: Unity's settings of an asset. Its GUID stays the same in all versions.
    sed "s|@GUID@|$(printf 'com.frazil.frazil/%s' "${2#"$unity/"}" | md5sum | cut -d ' ' -f 1)|; ${3:-}" "$root/packaging/unity/$1.meta" > "$2.meta"
}

fill nuget/Frazil.nuspec "$nuget/Frazil.nuspec"
fill nuget/content-types.xml "$nuget/[Content_Types].xml"
fill nuget/rels.xml "$nuget/_rels/.rels"
put "$root/packaging/csharp/README.md" "$nuget/README.md"
licence "$nuget/LICENSE.txt"
put "$notices" "$nuget/THIRD-PARTY-NOTICES.txt"
fill unity/package.json "$unity/package.json"
put "$root/packaging/csharp/README.md" "$unity/README.md"
sed "s|](docs/|](https://github.com/frazil/frazil/blob/main/docs/|g" "$root/CHANGELOG.md" > "$unity/CHANGELOG.md"
licence "$unity/LICENSE.md"
# Unity requires this name.
put "$notices" "$unity/Third Party Notices.md"
put "$root/packaging/unity/FrazilSharp.asmdef" "$unity/Runtime/FrazilSharp.asmdef"
put "$root/packaging/csharp/Snowflake.cs" "$unity/Runtime/Snowflake.cs"
fill unreal/Frazil.Build.cs "$unreal/Frazil.Build.cs"
licence "$unreal/LICENSE.txt"
put "$notices" "$unreal/THIRD-PARTY-NOTICES.txt"
mkdir -p "$godot"
licence "$godot/LICENSE.txt"
put "$notices" "$godot/THIRD-PARTY-NOTICES.txt"
libraries='' dependencies=''

for platform; do
    target=${platform%%=*} prefix=${platform#*=}
    # Each engine's name of the platform; empty if the engine does not support it. Unity's has the player, the editor's OS and the processor.
    in_unity='' in_unreal='' in_godot=''
    case $target in
        x86_64-unknown-linux-gnu) rid=linux-x64 in_unity='Linux64 Linux x86_64' in_unreal=Linux in_godot=linux.x86_64 zig=x86_64-linux-gnu ;;
        aarch64-unknown-linux-gnu) rid=linux-arm64 in_unreal=LinuxArm64 in_godot=linux.arm64 zig=aarch64-linux-gnu ;;
        x86_64-unknown-linux-musl) rid=linux-musl-x64 ;;
        aarch64-unknown-linux-musl) rid=linux-musl-arm64 ;;
        armv7-unknown-linux-gnueabihf) rid=linux-arm in_godot=linux.arm32 zig=arm-linux-gnueabihf ;;
        armv7-unknown-linux-musleabihf) rid=linux-musl-arm ;;
        x86_64-apple-darwin) rid=osx-x64 in_unity='OSXUniversal OSX x86_64' in_godot=macos.x86_64 zig=x86_64-macos ;;
        aarch64-apple-darwin) rid=osx-arm64 in_unity='OSXUniversal OSX ARM64' in_unreal=Mac in_godot=macos.arm64 zig=aarch64-macos ;;
        x86_64-pc-windows-*) rid=win-x64 in_unity='Win64 Windows x86_64' in_unreal=Win64 in_godot=windows.x86_64 zig=x86_64-windows-gnu ;;
        aarch64-pc-windows-*) rid=win-arm64 in_godot=windows.arm64 zig=aarch64-windows-gnu ;;
        *) echo "no package has a place for $target" >&2; exit 2 ;;
    esac
    # shellcheck disable=SC2016
    case $target in
        *-windows-*) library=bin/frazil.dll linked=lib/frazil.dll.lib loaded=frazil.dll extension=frazil_godot.dll flags='' ;;
        *-darwin)
            library=lib/libfrazil.dylib linked=$library loaded=libfrazil.$abi.dylib extension=libfrazil_godot.dylib
            flags="-Wl,-rpath,@loader_path -Wl,-install_name,@rpath/$extension" ;;
        *) library=lib/libfrazil.so linked=$library loaded=libfrazil.so.$abi extension=libfrazil_godot.so flags='-fPIC -Wl,-rpath,$ORIGIN' ;;
    esac

    put "$prefix/$library" "$nuget/runtimes/$rid/native/${library##*/}"
    if [ -n "$in_unity" ]; then
        read -r player os cpu <<< "$in_unity"
        plugin=$unity/Runtime/Plugins/$rid/${library##*/}
        put "$prefix/$library" "$plugin"
        meta plugin "$plugin" "s|@PLAYER@|$player|; s|@OS@|$os|; s|@CPU@|$cpu|"
    fi
    if [ -n "$in_unreal" ]; then
        put "$prefix/$linked" "$unreal/lib/$in_unreal/${linked##*/}"
        put "$prefix/$library" "$unreal/lib/$in_unreal/$loaded"
        put "$prefix/include/frazil.h" "$unreal/include/frazil.h"
        put "$prefix/include/frazil.hpp" "$unreal/include/frazil.hpp"
    fi
    if [ -n "$in_godot" ]; then
        put "$prefix/$library" "$godot/bin/$in_godot/$loaded"
        cc=cc
        [ "$target" = "$(uname -m)-unknown-linux-gnu" ] || cc="python-zig cc -target $zig"
        # shellcheck disable=SC2086
        $cc -std=c99 -O2 -s -shared $flags "-I$prefix/include" "$root/packaging/godot/frazil_godot.c" "$prefix/$linked" -o "$godot/bin/$in_godot/$extension"
        # The import library of the extension is not needed, because no program links it.
        rm -f "$godot/bin/$in_godot/frazil_godot.lib"
        libraries+="$in_godot = \"bin/$in_godot/$extension\""$'\n'
        dependencies+="$in_godot = { \"bin/$in_godot/$loaded\": \"\" }"$'\n'
    fi
done

cat > "$godot/frazil.gdextension" <<END
[configuration]

entry_symbol = "frazil_godot_init"
compatibility_minimum = "4.4"

[libraries]

$libraries
[dependencies]

$dependencies
END

# Unity writes no settings into a package, so each file and folder comes with its own.
find "$unity" -mindepth 1 ! -name '*.meta' | while read -r asset; do
    case $asset in
        *.cs) importer=MonoImporter ;;
        *.asmdef) importer=AssemblyDefinitionImporter ;;
        "$unity/package.json") importer=PackageManifestImporter ;;
        *) importer=TextScriptImporter ;;
    esac
    if [ -d "$asset" ]; then
        meta folder "$asset"
    elif [ ! -e "$asset.meta" ]; then
        meta asset "$asset" "s|@IMPORTER@|$importer|"
    fi
done

# Not Frazil.dll, because on Windows that is the same name as frazil.dll.
mkdir -p "$nuget/lib/netstandard2.0"
echo "[assembly: System.Reflection.AssemblyVersion(\"$version.0\")]" > "$out/nuget/Version.cs"
# With -doc, a public item without a comment is a warning.
mcs -langversion:7.2 -warnaserror -target:library "-out:$nuget/lib/netstandard2.0/FrazilSharp.dll" \
    "-doc:$nuget/lib/netstandard2.0/FrazilSharp.xml" "$root/packaging/csharp/Snowflake.cs" "$out/nuget/Version.cs"
rm "$out/nuget/Version.cs"
python3 "$root/scripts/archive.py" "$out/nuget/Frazil.$version.nupkg" "$nuget"
rm -r "$nuget"
