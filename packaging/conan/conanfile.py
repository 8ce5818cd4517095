"""The recipe for Conan 2: `conan create packaging/conan --build=missing` makes a package of this checkout. Its version is that of
include/sinter/config.hpp."""
import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.scm import Version

OLDEST = {"gcc": "12", "clang": "14"}


class Sinter(ConanFile):
    name = "sinter"
    description = "Deep learning with the element type, rank and device of a tensor in its C++ type"
    license = "MIT"
    topics = ("deep-learning", "tensor", "autograd", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_zlib": [True, False]}
    default_options = {"with_zlib": True}
    options_description = {"with_zlib": "unpack .gz files by zlib, not by the program gzip"}
    no_copy_source = True

    @property
    def _repository(self):
        return Path(self.recipe_folder).parent.parent

    def set_version(self):
        config = load(self, str(self._repository / "include/sinter/config.hpp"))
        self.version = ".".join(re.findall(r"^#define SINTER_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", config, re.M))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, str(self._repository), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("eigen/[>=3.4 <6]", transitive_headers=True)
        if self.options.with_zlib:
            self.requires("zlib/[>=1.2.11 <2]", transitive_headers=True)

    def package_id(self):
        self.info.settings.clear()

    def validate(self):
        check_min_cppstd(self, 20)
        oldest = OLDEST.get(str(self.settings.compiler))
        if oldest and Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(f"sinter needs {self.settings.compiler} {oldest} or later")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({"SINTER_TESTS": False, "SINTER_EXAMPLES": False, "SINTER_INSTALL": True,
                                          "SINTER_WITH_ZLIB": bool(self.options.with_zlib)})
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder) / "licenses"))
        rmdir(self, str(Path(self.package_folder) / "share/licenses"))

    def package_info(self):
        # find_package(sinter) reads the library's own files, which have sinter::compiled; the rest is for other build systems.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/sinter"]
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        if self.options.with_zlib:
            self.cpp_info.defines = ["SINTER_WITH_ZLIB=1"]
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
