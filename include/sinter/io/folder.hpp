// sinter/io/folder.hpp: the files of a folder by name.
#pragma once

#include <dirent.h>

#include <algorithm>
#include <vector>

#include "sinter/io/descriptor.hpp"

namespace sinter::detail {

SINTER_COLD inline bool is_folder(const std::string& path) {
  file_info info;
  return tell_file(path.c_str(), info) && is_folder(info);
}

/// Paths of the entries of a folder whose names begin and end so, sorted. Errors: io_error if it cannot be read.
SINTER_SHARED_COLD std::vector<std::string> files_in(const std::string& folder, std::string_view prefix,
                                                     std::string_view ending);

/// Makes a folder, and those that it lies in. Errors: io_error if one is not there and cannot be made.
SINTER_SHARED_COLD void make_folders(const std::string& folder);

#if SINTER_DEFINES

SINTER_SHARED_COLD void make_folders(const std::string& folder) {
  std::size_t end = 0;
  do {
    end = folder.find_first_of(ends_of_folders, end + 1);
    const std::string part = folder.substr(0, end);
    if (is_folder(part) || make_folder(part) == 0) continue;
    if (const int problem = errno; !is_folder(part))  // another process may have made it
      refuse<io_error>({folder, ": cannot make the folder ", part, ": ", system_text(problem)});
  } while (end != std::string::npos);
}

SINTER_SHARED_COLD std::vector<std::string> files_in(const std::string& folder, std::string_view prefix,
                                                     std::string_view ending) {
  struct listing {
    DIR* open;
    ~listing() {
      if (open != nullptr) ::closedir(open);
    }
  };
  const listing all{::opendir(folder.c_str())};
  if (all.open == nullptr) refuse<io_error>({folder, ": cannot open the folder: ", system_text(errno)});
  std::vector<std::string> paths;
  errno = 0;
  while (const dirent* const entry = ::readdir(all.open)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(prefix) && name.ends_with(ending))
      paths.push_back(folder + (folder.find_last_of(ends_of_folders) + 1 == folder.size() ? "" : "/") +
                      std::string(name));
    errno = 0;
  }
  if (errno != 0) refuse<io_error>({folder, ": reading the folder failed: ", system_text(errno)});
  std::sort(paths.begin(), paths.end());
  return paths;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
