// tests/io/formats.hpp: the files of tests/io/data/formats.tsv, and what safetensors and .npy files hold as text.
#pragma once

#include <fstream>

#include "folder.hpp"

/// A file and what reading it must give: "ok" and the tensors, or a part of the message.
struct format_case {
  std::string name, expected, bytes;
};

inline std::vector<format_case> format_cases(std::string_view ending) {
  std::ifstream in(SINTER_REPOSITORY "/tests/io/data/formats.tsv");
  std::vector<format_case> cases;
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find('\t'), second = line.rfind('\t');
    format_case c{line.substr(0, first), line.substr(first + 1, second - first - 1), ""};
    for (std::size_t i = second + 1; i + 1 < line.size(); i += 2)
      c.bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    if (c.name.ends_with(ending)) cases.push_back(c);
  }
  return cases;
}

inline std::string extents_text(const sinter::index_t* shape, std::size_t rank) {
  std::string text = "[";
  for (std::size_t d = 0; d < rank; ++d) text += (d > 0 ? "," : "") + std::to_string(shape[d]);
  return text + "]";
}

/// All tensors, such as "ok a I32 [2] = 1 2; b F32 [0] empty".
inline std::string described(const sinter::safetensors& file) {
  std::string text = file.size() == 0 ? "ok, no tensors" : "ok";
  for (const std::string& name : file.names()) {
    const sinter::host_tensor e = file.entry(name).value;
    text += (text == "ok" ? " " : "; ") + name + " " + std::string(file.dtype(name)) + " " +
            extents_text(e.shape.data(), e.shape.size());
    const std::size_t size = sinter::element_size(e.element);
    text += size == 0 ? " other" : e.bytes.empty() ? " empty" : " =";
    if (size > 0)
      for (std::size_t i = 0; i < e.bytes.size(); i += size)
        sinter::with_element(e.element, [&](auto of) {
          text += " " + sinter::detail::element_text<decltype(of)>(reinterpret_cast<const char*>(e.bytes.data()) + i);
        });
  }
  return text;
}

/// The array, such as "ok float [2] = 1 2".
template <int R = 0>
std::string described_npy(const std::string& path) {
  sinter::detail::byte_source source(path);
  const sinter::detail::npy_header header = sinter::detail::read_npy_header(source, path);
  if constexpr (R < 3)
    if (header.rank != R) return described_npy<R + 1>(path);
  const auto x = sinter::read_npy_as<double, R>(path);
  std::string text = "ok " + std::string(sinter::element_name(header.element)) + " " +
                     extents_text(x.shape().data(), R) + (x.numel() == 0 ? " empty" : " =");
  for (const double value : x) text += " " + sinter::detail::joined({value});
  return text;
}

/// What `read` says of the file, or the text of its io_error.
template <class F>
std::string verdict(const F& read) {
  try {
    return read();
  } catch (const sinter::io_error& e) {
    return e.what();
  }
}
