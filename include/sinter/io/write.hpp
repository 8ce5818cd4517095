// sinter/io/write.hpp: writes files that are complete or as they were before.
#pragma once

#if !defined(_WIN32)
#include <dirent.h>
#include <sys/file.h>
#endif

#include <atomic>
#include <cstdio>
#if defined(_WIN32)
#include <filesystem>
#endif

#include "sinter/core/platform.hpp"
#include "sinter/io/descriptor.hpp"

namespace sinter::detail {

/// Whether a written file must be on the disk, and not only with the system, when the call returns.
enum class durability { of_the_system, of_the_disk };

inline constexpr std::string_view unfinished_prefix = ".sinter-", saving_suffix = ".saving";

#if defined(_WIN32)

// Links are followed by the system; files have no modes and no locks that matter here; nothing is removed.
inline constexpr bool renames_open_files = false;
inline std::string link_target(std::string path) { return path; }
inline int copy_mode(const descriptor&, const file_info&) { return 0; }
inline void remove_unfinished(const std::string&) {}
inline bool claim_new_file(const descriptor&) { return true; }
inline int sync_folder(const std::string&) { return 0; }
inline int sync_file(const descriptor& file) { return ::_commit(file.get()) == 0 ? 0 : errno; }
inline bool may_write(const std::string& path) { return ::_access(path.c_str(), 2) == 0; }

/// Gives a file another name; what had that name is gone. Returns the error, or 0.
SINTER_SHARED_COLD int rename_file(const std::string& from, const std::string& to);

#else

inline constexpr bool renames_open_files = true;

/// The name that symbolic links lead to, whether or not there is a file of that name.
SINTER_SHARED_COLD std::string link_target(std::string path);

/// Gives a file the mode, owner and group of `old`. A group that cannot be kept has no rights in the new file.
SINTER_SHARED_COLD int copy_mode(const descriptor& file, const file_info& old);

/// Removes the unfinished files of durable writers in a folder ("" or with / at its end) that were killed. Those at
/// work hold a lock.
SINTER_SHARED_COLD void remove_unfinished(const std::string& folder);

/// Locks a new file against remove_unfinished(); whether it is still there. Where files have no locks nothing is
/// removed either.
SINTER_COLD inline bool claim_new_file(const descriptor& file) {
  file_info info;
  if (restarted([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK) return false;
  return tell_file(file, info) && info.st_nlink > 0;
}

/// Brings the names in a folder to the disk; returns the error, or 0. Some file systems know no such call.
SINTER_SHARED_COLD int sync_folder(const std::string& folder);

inline int sync_file(const descriptor& file) {
  return restarted([&] { return ::fsync(file.get()); }) == 0 ? 0 : errno;
}
inline bool may_write(const std::string& path) { return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0; }

/// Gives a file another name; what had that name is gone. Returns the error, or 0.
inline int rename_file(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

#endif  // _WIN32

/// Pieces of a file, one after the other. A std::span would take the compiler 2 MB: it checks the requirements of
/// ranges.
struct text_list {
  const std::string_view* first;
  std::size_t count;
};

/// Returns the error, or 0.
inline int write_all(const descriptor& file, const text_list& pieces) {
  int problem = 0;
  for (std::size_t i = 0; i < pieces.count && problem == 0; ++i) problem = write_all(file, pieces.first[i]);
  return problem;
}

/// Writes to a new file in the folder of `name`, which then takes that name; returns the error, or 0. A file of the
/// name keeps its contents until then, and its mode passes on. `old` is null if there is none.
SINTER_SHARED_COLD int replace_file(const std::string& name, const text_list& pieces, const file_info* old,
                                    durability until);

/// Writes all pieces, one after the other, or leaves what was there. Symbolic links lead to the file that is written;
/// what is no regular file, such as a device or a pipe, is written straight to.
SINTER_SHARED_COLD void write_pieces(const std::string& path, const text_list& pieces,
                                     durability until = durability::of_the_system);

/// The same of one piece.
SINTER_SHARED_COLD void write_file(const std::string& path, std::string_view bytes);

/// Gives every file that takes the place of another a name of its own until then.
inline constinit std::atomic<unsigned> files_replaced{0};

#if SINTER_DEFINES

#if defined(_WIN32)

// Of <filesystem>, which asks Windows for a replacing move; std::rename refuses where a file has the name.
SINTER_SHARED_COLD int rename_file(const std::string& from, const std::string& to) {
  std::error_code problem;
  std::filesystem::rename(from, to, problem);
  return problem ? EACCES : 0;
}

#else

SINTER_SHARED_COLD std::string link_target(std::string path) {
  char to[4096];
  for (int links = 0; links < 40; ++links) {
    const ssize_t size = ::readlink(path.c_str(), to, sizeof to);
    if (size < 0) break;  // not a link
    const std::string_view target(to, static_cast<std::size_t>(size));
    const std::size_t folder = target.starts_with('/') ? 0 : path.rfind('/') + 1;
    path.replace(folder, std::string::npos, target);
  }
  return path;
}

SINTER_SHARED_COLD int copy_mode(const descriptor& file, const file_info& old) {
  mode_t mode = old.st_mode & 07777;
  if (::fchown(file.get(), old.st_uid, old.st_gid) != 0)
    mode &= ::fchown(file.get(), static_cast<uid_t>(-1), old.st_gid) == 0 ? 0777u : 0707u;
  return ::fchmod(file.get(), mode) == 0 ? 0 : errno;
}

SINTER_SHARED_COLD void remove_unfinished(const std::string& folder) {
  DIR* const list = ::opendir(folder.empty() ? "." : folder.c_str());
  if (list == nullptr) return;
  while (const dirent* const entry = ::readdir(list)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(unfinished_prefix) || !name.ends_with(saving_suffix)) continue;
    const std::string path = folder + entry->d_name;
    const descriptor file = open_file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  }
  ::closedir(list);
}

SINTER_SHARED_COLD int sync_folder(const std::string& folder) {
  const descriptor names = open_file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (!names.is_open()) return errno == EACCES ? 0 : errno;
  return restarted([&] { return ::fsync(names.get()); }) == 0 || errno == EINVAL ? 0 : errno;
}

#endif  // _WIN32

SINTER_SHARED_COLD int replace_file(const std::string& name, const text_list& pieces, const file_info* old,
                                    durability until) {
  std::atomic<unsigned>& count = files_replaced;
  const bool on_disk = until == durability::of_the_disk;
  const std::string folder = name.substr(0, name.find_last_of(ends_of_folders) + 1);
  if (on_disk) remove_unfinished(folder);
  std::string part;
  descriptor file;
  bool claimed = false;
  do {  // the name is taken where a process of another machine or container has the same number
    part = joined({folder, unfinished_prefix, process_number(), "-", count++, on_disk ? saving_suffix : ".part"});
    file = open_file(part, O_WRONLY | O_CREAT | O_EXCL, old != nullptr ? 0600 : 0666);
    claimed = file.is_open() && (!on_disk || claim_new_file(file));
  } while (!claimed && (file.is_open() || errno == EEXIST));
  if (!file.is_open()) refuse<io_error>({name, ": cannot make a new file in its folder: ", system_text(errno)});
  int problem = write_all(file, pieces);
  if (problem == 0 && old != nullptr) problem = copy_mode(file, *old);
  if (problem == 0 && on_disk) problem = sync_file(file);
  // A lock ends with the file, so a durable one gets its name before.
  if (!on_disk || !renames_open_files) {
    if (const int closing = file.close(); problem == 0) problem = closing;
  }
  if (problem == 0) problem = rename_file(part, name);
  if (problem != 0) {
    ::unlink(part.c_str());
    return problem;
  }
  return on_disk ? sync_folder(folder) : 0;
}

SINTER_SHARED_COLD void write_pieces(const std::string& path, const text_list& pieces, durability until) {
  file_info old, target;
  const bool exists = tell_file(path.c_str(), old);
  if (!exists && errno != ENOENT) refuse<io_error>({path, ": cannot open for writing: ", system_text(errno)});
  int problem = 0;
  const std::string name = link_target(path);
  // Links in /proc may lead to what has no name, such as a file that was removed.
  if (exists && (!is_regular(old) || !tell_file(name.c_str(), target))) {
    descriptor file = open_file(path, O_WRONLY | O_TRUNC);
    if (!file.is_open()) refuse<io_error>({path, ": cannot open for writing: ", system_text(errno)});
    problem = write_all(file, pieces);
    if (const int closing = file.close(); problem == 0) problem = closing;
  } else {
    if (exists && !may_write(name)) refuse<io_error>({path, ": cannot open for writing: ", system_text(errno)});
    problem = replace_file(name, pieces, exists ? &old : nullptr, until);
  }
  if (problem != 0) refuse<io_error>({path, ": writing failed: ", system_text(problem)});
}

SINTER_SHARED_COLD void write_file(const std::string& path, std::string_view bytes) { write_pieces(path, {&bytes, 1}); }

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
