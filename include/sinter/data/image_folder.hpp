// sinter/data/image_folder.hpp: pictures in folders that are named after their classes, as a data set.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "sinter/data/dataset.hpp"
#include "sinter/io/folder.hpp"
#include "sinter/io/image.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/interpolate.hpp"
#include "sinter/ops/round.hpp"

namespace sinter {

struct image_folder_options {
  std::array<index_t, 2> size = {};       ///< {height, width} that pictures are resized to; {}: as their files have it
  image_mode mode = image_mode::rgb;      ///< as read_image has it
  bool apply_exif_orientation = false;    ///< likewise
  index_t max_pixels = index_t{1} << 28;  ///< likewise
  int threads = 1;                        ///< that read the files of a batch, the caller's among them
};

namespace detail {

template <class T>
concept image_element = std::is_same_v<T, float> || std::is_same_v<T, std::uint8_t>;

/// What lies in a folder of pictures.
struct image_files {
  std::vector<std::string> classes, paths;
  std::vector<std::int64_t> labels;
};

/// Errors: io_error.
SINTER_SHARED_COLD image_files find_images(const std::string& path);

/// Of the file whose number is `row`. Errors: index_error.
SINTER_SHARED const std::string& path_of_sample(const image_files& files, index_t row);

/// Errors: value_error.
SINTER_SHARED_COLD void check_image_folder(const std::array<index_t, 2>& size, int threads);

/// Calls f(context, i) for i from 1 to n - 1 on several threads, and rethrows what went wrong first in that order.
SINTER_SHARED void run_at_once(index_t n, int threads, void (*f)(const void*, index_t), const void* context);

}  // namespace detail

/// A data set of pictures, as torchvision.datasets.ImageFolder: every folder in `path` is a class, named after it, and
/// holds PNG and JPEG files, in folders of its own, too. Classes are numbered in the order of their names, the samples
/// of a class lie in that of their paths; what has another ending than .png, .jpg or .jpeg is left out. Sample i is
/// read when it is asked for: (channels, height, width), float from 0 to 1 or std::uint8_t from 0 to 255, and the
/// number of its class. With `size` it is resized, by `interpolate`, bilinear and antialiased, so that samples form
/// batches. Errors: io_error for a folder that cannot be read, has no folders, or has one without pictures; from get()
/// for a file that read_image refuses.
///
///     image_folder train("flowers/train", {.size = {64, 64}});  // train.classes() == {"daisy", "rose", ...}
///     data_loader loader(train, {.batch_size = 32, .shuffle = true});  // batches of (32, 3, 64, 64) and (32,)
template <detail::image_element T = float>
class image_folder {
 public:
  explicit image_folder(const std::string& path, const image_folder_options& options = {}) : options_(options) {
    detail::check_image_folder(options.size, options.threads);
    files_ = std::make_shared<const detail::image_files>(detail::find_images(path));
  }

  index_t size() const { return static_cast<index_t>(files_->paths.size()); }
  /// The names of the classes 0, 1, ...
  const std::vector<std::string>& classes() const { return files_->classes; }
  /// The file and the class of each sample.
  const std::vector<std::string>& paths() const { return files_->paths; }
  const std::vector<std::int64_t>& targets() const { return files_->labels; }
  const image_folder_options& options() const { return options_; }

  sample<tensor<T, 3>, std::int64_t> get(index_t row) const;

  /// The samples at some numbers, of which there is at least one. Errors: shape_error where their pictures differ.
  batch<tensor<T, 4>, tensor<std::int64_t, 1>> gather(std::span<const index_t> rows) const;

 private:
  tensor<T, 3> resized(const tensor<std::uint8_t, 3>& image) const;

  image_folder_options options_;
  std::shared_ptr<const detail::image_files> files_;
};

image_folder(const std::string&) -> image_folder<float>;
image_folder(const std::string&, const image_folder_options&) -> image_folder<float>;

template <detail::image_element T>
sample<tensor<T, 3>, std::int64_t> image_folder<T>::get(index_t row) const {
  const std::string& path = detail::path_of_sample(*files_, row);
  const tensor<std::uint8_t, 3> image = read_image(path, {.mode = options_.mode,
                                                          .apply_exif_orientation = options_.apply_exif_orientation,
                                                          .max_pixels = options_.max_pixels});
  return {resized(image), files_->labels[static_cast<std::size_t>(row)]};
}

template <detail::image_element T>
batch<tensor<T, 4>, tensor<std::int64_t, 1>> image_folder<T>::gather(std::span<const index_t> rows) const {
  if (rows.empty()) detail::refuse<value_error>({"image_folder: a batch of no samples"});
  const auto n = static_cast<index_t>(rows.size());
  const auto first = get(rows[0]);
  const tensor<T, 4> images = detail::stack_for(n, first.input);
  const auto labels = detail::stack_for(n, first.target);
  const auto put = [&](index_t i, const sample<tensor<T, 3>, std::int64_t>& s) {
    const index_t row = rows[static_cast<std::size_t>(i)];
    if (s.input.shape() != first.input.shape())
      detail::refuse<shape_error>({detail::path_of_sample(*files_, row), ": has shape ", s.input.shape(),
                                   ", unlike the others of its batch, ", first.input.shape(),
                                   "; give image_folder a size, or batches of 1"});
    detail::stack_put(images, i, s.input, row);
    detail::stack_put(labels, i, s.target, row);
  };
  put(0, first);
  const auto read = [&](index_t i) { put(i, get(rows[static_cast<std::size_t>(i)])); };
  detail::run_at_once(
      n, options_.threads, [](const void* f, index_t i) { (*static_cast<const decltype(read)*>(f))(i); }, &read);
  return {images, labels};
}

template <detail::image_element T>
tensor<T, 3> image_folder<T>::resized(const tensor<std::uint8_t, 3>& image) const {
  const index_t height = options_.size[0], width = options_.size[1];
  const bool keeps_size = height == 0 || (image.shape()[1] == height && image.shape()[2] == width);
  const interpolate_options to{.size = {height, width}, .mode = interpolation::bilinear, .antialias = true};
  const tensor<std::uint8_t, 4> batch_of_one = image.unsqueeze(0);
  if constexpr (std::is_same_v<T, float>) {
    const tensor<float, 4> scaled = cast<float>(batch_of_one) / 255.f;
    return keeps_size ? scaled.squeeze(0) : eval(interpolate(scaled, to)).squeeze(0);
  } else {
    if (keeps_size) return image;
    return eval(cast<std::uint8_t>(round(interpolate(cast<float>(batch_of_one), to)))).squeeze(0);
  }
}

#if SINTER_DEFINES

namespace detail {

SINTER_COLD inline std::string_view name_in_path(std::string_view path) {
  return path.substr(path.find_last_of(ends_of_folders) + 1);
}
SINTER_COLD inline bool is_hidden(std::string_view path) { return name_in_path(path).starts_with('.'); }
/// By its ending, in capitals or not.
SINTER_COLD inline bool is_picture(std::string_view path) {
  for (const std::string_view ending : {".png", ".jpg", ".jpeg"})
    if (path.size() > ending.size() && std::equal(ending.rbegin(), ending.rend(), path.rbegin(), [](char e, char c) {
          return e == (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        }))
      return true;
  return false;
}

/// Adds a folder, and all in it.
SINTER_COLD inline void add_folders_in(const std::string& path, int depth, std::vector<std::string>& to) {
  constexpr int most = 16;
  if (depth > most) refuse<io_error>({path, ": lies more than ", most, " folders deep; does a link lead back?"});
  to.push_back(path);
  for (const std::string& entry : files_in(path, "", ""))
    if (!is_hidden(entry) && !is_picture(entry) && is_folder(entry)) add_folders_in(entry, depth + 1, to);
}

SINTER_SHARED_COLD image_files find_images(const std::string& path) {
  image_files found;
  for (const std::string& entry : files_in(path, "", "")) {
    if (is_hidden(entry) || !is_folder(entry)) continue;
    const auto label = static_cast<std::int64_t>(found.classes.size());
    found.classes.emplace_back(name_in_path(entry));
    std::vector<std::string> folders;
    add_folders_in(entry, 0, folders);
    std::sort(folders.begin(), folders.end());
    for (const std::string& folder : folders)
      for (std::string& file : files_in(folder, "", ""))
        if (!is_hidden(file) && is_picture(file)) found.paths.push_back(std::move(file));
    if (found.paths.size() == found.labels.size())
      refuse<io_error>(
          {entry, ": has no pictures, which end in .png, .jpg or .jpeg, but image_folder takes it for a class"});
    found.labels.resize(found.paths.size(), label);
  }
  if (found.classes.empty()) refuse<io_error>({path, ": has no folders; image_folder takes each of them for a class"});
  return found;
}

SINTER_SHARED const std::string& path_of_sample(const image_files& files, index_t row) {
  const auto count = static_cast<index_t>(files.paths.size());
  if (row < 0 || row >= count) refuse<index_error>({"image_folder: sample ", row, " of ", count});
  return files.paths[static_cast<std::size_t>(row)];
}

SINTER_SHARED_COLD void check_image_folder(const std::array<index_t, 2>& size, int threads) {
  if ((size[0] != 0 || size[1] != 0) && (size[0] < 1 || size[1] < 1))
    refuse<value_error>({"image_folder: the size is {", size[0], ", ", size[1],
                         "}; give height and width, both at least 1, or neither"});
  if (threads < 1) refuse<value_error>({"image_folder: threads must be at least 1, not ", threads});
}

SINTER_SHARED void run_at_once(index_t n, int threads, void (*f)(const void*, index_t), const void* context) {
  std::atomic<index_t> next{1};
  std::mutex mutex;
  index_t failed = n;
  std::exception_ptr failure;
  const auto work = [&] {
    for (index_t i; (i = next.fetch_add(1)) < n;) {
      try {
        f(context, i);
      } catch (...) {
        next = n;  // all before i are under way
        const std::lock_guard lock(mutex);
        if (i < failed) failed = i, failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  try {
    for (index_t i = 1; i < std::min<index_t>(threads, n - 1); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads to be had
  }
  work();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail

#endif  // SINTER_DEFINES

}  // namespace sinter
