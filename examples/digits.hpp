// Reads handwritten digits as images: the 8x8 ones in this repository, or MNIST.
#pragma once

#include <cstdio>
#include <string>

#include <sinter/sinter.hpp>  // with SINTER_WITH_DATA

using pictures = sinter::tensor<float, 4>;  // (N, 1, height, width), grey values from 0 to 1
using labels = sinter::tensor<std::int64_t, 1>;
struct digits {
  pictures train_x;
  labels train_y;
  pictures test_x;
  labels test_y;
  bool is_mnist() const { return train_x.extent(3) == 28; }
};

inline bool exists(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  return file != nullptr && std::fclose(file) == 0;
}

// The 1797 lines in a random but fixed order: the first 1437 to train on, the other 360 to test.
inline digits read_small_digits(const std::string& path) {
  const sinter::tensor table = sinter::read_csv<float>(path);
  if (table.shape() != sinter::extents<2>{{1797, 65}})
    throw sinter::io_error(path + ": " + std::to_string(table.extent(0)) + " rows of " +
                           std::to_string(table.extent(1)) + " numbers, not 1797 of 65");
  sinter::generator gen(2024);
  const sinter::tensor mixed = index_select(table, 0, randperm(gen, 1797));
  const pictures x = mixed.slice(1, 0, 64).reshape({1797, 1, 8, 8}) / 16.f;
  const labels y = sinter::cast<std::int64_t>(mixed.select(1, 64));
  return {x.slice(0, 0, 1437), y.slice(0, 0, 1437), x.slice(0, 1437, 1797), y.slice(0, 1437, 1797)};
}

inline digits read_mnist(const std::string& folder) {
  const auto path = [&](std::string name) { return exists(name = folder + "/" + name) ? name : name + ".gz"; };
  const auto read_x = [&](const char* name) -> pictures {
    return sinter::cast<float>(sinter::read_idx<std::uint8_t, 3>(path(name)).unsqueeze(1)) / 255.f;
  };
  const auto read_y = [&](const char* name) -> labels {
    return sinter::cast<std::int64_t>(sinter::read_idx<std::uint8_t, 1>(path(name)));
  };
  return {read_x("train-images-idx3-ubyte"), read_y("train-labels-idx1-ubyte"), read_x("t10k-images-idx3-ubyte"),
          read_y("t10k-labels-idx1-ubyte")};
}

// What the folder holds.
inline digits read_digits(const std::string& folder) {
  if (exists(folder + "/train-images-idx3-ubyte") || exists(folder + "/train-images-idx3-ubyte.gz"))
    return read_mnist(folder);
  if (exists(folder + "/digits.csv")) return read_small_digits(folder + "/digits.csv");
  throw sinter::io_error(folder +
                         ": holds neither digits.csv nor train-images-idx3-ubyte(.gz); name the folder with --data");
}
