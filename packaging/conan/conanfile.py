"""A Conan 2 recipe that builds the checkout that contains it: conan create packaging/conan"""

import re
import shutil
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import cross_building
from conan.tools.files import copy, load, rm, rmdir
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"


class Frazil(ConanFile):
    name = "frazil"
    description = "64-bit, time-ordered, globally unique IDs"
    license = "MIT OR Apache-2.0"
    homepage = url = "https://github.com/frazil/frazil"
    topics = ("snowflake", "id", "unique", "distributed", "sortable")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    # stores: the clients of Redis, PostgreSQL, MariaDB/MySQL, etcd and ZooKeeper.
    options = {"shared": [True, False], "stores": [True, False]}
    default_options = {"shared": False, "stores": True}
    no_copy_source = True

    def _root(self):
        return Path(self.recipe_folder).parents[1]

    def set_version(self):
        self.version = re.search(r'^version = "(.*)"', load(self, self._root() / "Cargo.toml"), re.MULTILINE)[1]

    def export_sources(self):
        root, here = self._root(), Path(self.export_sources_folder)
        # Cargo reads the manifests of all workspace members, and looks for their sources.
        [members] = re.findall(r"^members = \[(.*)\]", load(self, root / "Cargo.toml"), re.MULTILINE)
        members = re.findall(r'"(.+?)"', members)
        for folder in ("core", "c-api", "include", *(f"{member}/src" for member in members)):
            copy(self, "*", root / folder, here / folder)
        files = ["Cargo.toml", "Cargo.lock", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt", "node/build.rs", "scripts/rust.sh"]
        for file in [*files, *(f"{member}/Cargo.toml" for member in members)]:
            (here / file).parent.mkdir(exist_ok=True)
            shutil.copy(root / file, here / file)

    def layout(self):
        basic_layout(self)

    def validate(self):
        if self.settings.os not in ("Linux", "Macos") or cross_building(self):
            raise ConanInvalidConfiguration("frazil builds from source on Linux and macOS, for the machine itself")

    def package_id(self):
        # The package does not depend on the compiler: it has a C ABI, and rustc compiles it.
        self.info.settings.rm_safe("compiler")

    def _installed(self):
        return Path(self.build_folder) / "installed"

    def build(self):
        flags = ([] if self.settings.build_type == "Debug" else ["--release"]) + ([] if self.options.stores else ["--lean"])
        target = Path(self.build_folder) / "target"
        install = Path(self.source_folder) / "c-api/install.sh"
        self.run(f'CARGO_TARGET_DIR="${{CARGO_TARGET_DIR:-{target}}}" "{install}" {" ".join(flags)} "{self._installed()}"')

    def package(self):
        copy(self, "*", self._installed(), self.package_folder)
        for licences in ("LICENSE-*", "THIRD-PARTY-NOTICES.txt"):
            copy(self, licences, self.source_folder, Path(self.package_folder) / "licenses")
        lib = Path(self.package_folder) / "lib"
        for kind in ["*.a"] if self.options.shared else ["*.so*", "*.dylib"]:
            rm(self, kind, lib)
        # Conan generates its own CMake files.
        rmdir(self, lib / "cmake")
        rmdir(self, Path(self.package_folder) / "share/doc")

    def package_info(self):
        self.cpp_info.libs = ["frazil"]
        if not self.options.shared:
            # The libraries that a program with the static library needs, according to rustc.
            needed = load(self, Path(self.package_folder) / "lib/pkgconfig/frazil.pc")
            needed = re.search(r"^Libs.private: (.*)$", needed, re.MULTILINE)[1]
            self.cpp_info.frameworks = re.findall(r"-framework (\S+)", needed)
            self.cpp_info.system_libs = re.findall(r"-l(\S+)", needed)
