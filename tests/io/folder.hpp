// tests/io/folder.hpp: a folder for the files of a test, and the message of what went wrong.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

/// Is gone, with all that is in it, when the test ends.
struct folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("sinter_io_test_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  /// The same, with these bytes in the file.
  std::string file(const std::string& name, std::string_view bytes) const {
    const std::string full = file(name);
    sinter::detail::write_file(full, bytes);
    return full;
  }
  /// All that is there, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path)) all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }
};

/// What the Error that f throws says, or `otherwise`.
template <class Error, class F>
std::string message_of(const F& f, const char* otherwise) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return otherwise;
}
