// sinter/data/cifar10.hpp: the binary files of CIFAR-10: for each image one byte of label and 3x32x32 bytes of colours.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/data/dataset.hpp"
#include "sinter/io/file.hpp"
#include "sinter/io/folder.hpp"

namespace sinter {

struct cifar10_options {
  std::string prefix = "";                      ///< of a folder, reads files whose names begin so, such as "data_batch"
  index_t max_unpacked = default_max_unpacked;  ///< bytes that a .gz file may hold
};

/// The images of a file, or of every *.bin in a folder in the order of their names: `inputs` (N, 3, 32, 32), planes of
/// red, green and blue from 0 to 255, and `targets` (N,), labels from 0 to 9. Errors: io_error for a file that cannot
/// be read, is empty, is no multiple of 3073 bytes or has a label above 9, and for a folder without such files.
/// https://www.cs.toronto.edu/~kriz/cifar.html
///
///     auto [images, labels] = read_cifar10("cifar-10-batches-bin", {.prefix = "data_batch"});
///     auto [test_images, test_labels] = read_cifar10("cifar-10-batches-bin/test_batch.bin");
SINTER_SHARED_COLD batch<tensor<std::uint8_t, 4>, tensor<std::int64_t, 1>> read_cifar10(
    const std::string& path, const cifar10_options& options = {});

#if SINTER_DEFINES

SINTER_SHARED_COLD batch<tensor<std::uint8_t, 4>, tensor<std::int64_t, 1>> read_cifar10(
    const std::string& path, const cifar10_options& options) {
  constexpr std::size_t pixels = 3 * 32 * 32, image_bytes = 1 + pixels;
  std::vector<std::string> paths = {path};
  if (detail::is_folder(path)) {
    paths = detail::files_in(path, options.prefix, ".bin");
    if (paths.empty()) detail::refuse<io_error>({path, ": no file in it is named ", options.prefix, "*.bin"});
  }
  std::vector<std::string> files;
  std::size_t count = 0;
  for (const std::string& name : paths) {
    const std::string& bytes = files.emplace_back(detail::read_file(name, options.max_unpacked));
    if (bytes.empty() || bytes.size() % image_bytes != 0)
      detail::refuse<io_error>({name, ": has ", bytes.size(), " bytes, but a file of CIFAR-10 has a multiple of ",
                                image_bytes, "; it is cut short or holds something else"});
    for (std::size_t i = 0; i < bytes.size(); i += image_bytes)
      if (const int label = static_cast<unsigned char>(bytes[i]); label > 9)
        detail::refuse<io_error>({name, ": image ", i / image_bytes, " has the label ", label,
                                  ", but CIFAR-10 has the labels 0 to 9; CIFAR-100 is not read"});
    count += bytes.size() / image_bytes;
  }
  const auto n = static_cast<index_t>(count);
  const auto images = tensor<std::uint8_t, 4>::uninitialized(extents<4>{{n, 3, 32, 32}});
  const auto labels = tensor<std::int64_t, 1>::uninitialized(extents<1>{{n}});
  std::uint8_t* image = images.data();
  std::int64_t* label = labels.data();
  for (std::string& bytes : files) {
    for (std::size_t i = 0; i < bytes.size(); i += image_bytes, image += pixels) {
      *label++ = static_cast<unsigned char>(bytes[i]);
      std::memcpy(image, bytes.data() + i + 1, pixels);
    }
    bytes = {};
  }
  return {images, labels};
}

#endif  // SINTER_DEFINES

}  // namespace sinter
