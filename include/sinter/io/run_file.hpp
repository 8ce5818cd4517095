// sinter/io/run_file.hpp: the file of a run_checkpoint: several parts of texts and tensors in one safetensors file,
// with checksums.
//
// Version 1. The metadata has "format", "version" and "kinds", the kinds of the parts in their order, with a blank
// between two. What part n says has keys that begin with "n."; its tensors have names that begin with "n.kind.".
// "checksums" are those of the tensors in the order of their names, "checksum" is that of all other metadata and of the
// names, types and shapes.
#pragma once

#include <bit>
#include <charconv>
#include <cstring>

#include "sinter/io/from_chars.hpp"
#include "sinter/io/write_safetensors.hpp"

namespace sinter::detail {

/// A sum over bytes that any change within 8 of them changes, and other changes change all but surely: each step is
/// one-to-one in the sum and in the word.
SINTER_SHARED_COLD std::uint64_t checksum_of(std::string_view bytes);

/// The elements as they lie in the file.
SINTER_SHARED_COLD std::uint64_t checksum_of(const host_tensor& x);

SINTER_COLD inline std::string hexadecimal(std::uint64_t x) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, x, 16).ptr;
  return std::string(16 - static_cast<std::size_t>(end - digits), '0').append(digits, end);
}

inline constexpr const char* run_file_format = "sinter run checkpoint";
inline constexpr int run_file_version = 1;
inline constexpr const char* run_file_advice = "; load an older checkpoint";

/// What is saved of one object.
class run_part {
 public:
  /// `place` begins messages.
  run_part(std::string the_kind, std::string place) : kind(std::move(the_kind)), place_(std::move(place)) {}

  void put(std::string key, std::string text) { texts.emplace_back(std::move(key), std::move(text)); }
  template <class Number>
    requires(std::is_arithmetic_v<Number>)
  void put(std::string key, Number x) {
    char digits[32];
    put(std::move(key), std::string(digits, std::to_chars(digits, digits + sizeof digits, x).ptr));
  }

  /// Errors: io_error where there is none, as in a file of another program.
  SINTER_COLD const std::string& text(std::string_view key) const {
    for (const auto& [name, value] : texts)
      if (name == key) return value;
    detail::refuse<io_error>({place_, " lacks ", quoted_name(key), run_file_advice});
  }
  template <class Number>
  Number number(std::string_view key) const {
    const std::string& digits = text(key);
    Number x = 0;
    const auto [end, error] = detail::from_chars(digits.data(), digits.data() + digits.size(), x);
    if (error != std::errc() || end != digits.data() + digits.size())
      detail::refuse<io_error>({place_, ": ", quoted_name(key), " is ", quoted_name(digits), run_file_advice});
    return x;
  }
  bool has(std::string_view key) const {
    for (const auto& [name, value] : texts)
      if (name == key) return true;
    return false;
  }
  /// Errors: value_error, with the place before the text.
  [[noreturn]] SINTER_COLD void misfit(std::initializer_list<text_piece> what) const {
    detail::refuse<value_error>({place_, ": ", joined(what), "; nothing was loaded"});
  }
  const std::string& place() const { return place_; }

  std::string kind;
  safetensors_metadata texts;
  std::vector<named_tensor> tensors;

 private:
  std::string place_;
};

/// "run.ckpt: object 2, an optimizer"; objects count from 1, as the arguments of save().
SINTER_COLD inline std::string run_part_place(const std::string& path, std::size_t number, std::string_view kind) {
  return joined({path, ": object ", number + 1, " (", kind, ")"});
}

SINTER_COLD inline std::string run_file_kinds(const std::vector<run_part>& parts, std::string_view between) {
  std::string all;
  for (const run_part& p : parts) all += joined({all.empty() ? "" : between, p.kind});
  return all;
}

/// All that a header says but for "checksum", as one text.
SINTER_SHARED_COLD std::uint64_t header_checksum(const safetensors_metadata& metadata,
                                                 const std::vector<named_tensor>& tensors);

SINTER_SHARED_COLD void sort_by_name(std::vector<named_tensor>& tensors);

/// Writes a file that is complete, on the disk, or as it was before. Errors: those of write_safetensors.
SINTER_SHARED_COLD void write_run_file(const std::string& path, const std::vector<run_part>& parts);

/// The value of a key; empty if there is none.
SINTER_COLD inline std::string_view metadata_at(const safetensors_metadata& metadata, std::string_view key) {
  for (const auto& [name, value] : metadata)
    if (name == key) return value;
  return {};
}

/// Errors: io_error for another file and for one of another version.
SINTER_SHARED_COLD void check_run_format(const std::string& path, const safetensors_metadata& metadata);

/// Errors: io_error for a file that is not as it was written.
SINTER_SHARED_COLD void check_run_file(const std::string& path, const safetensors_metadata& metadata,
                                       const std::vector<named_tensor>& tensors);

/// The parts of a file that is as it was written. Errors: io_error.
SINTER_SHARED_COLD std::vector<run_part> read_run_file(const std::string& path);

#if SINTER_DEFINES

SINTER_SHARED_COLD std::uint64_t checksum_of(std::string_view bytes) {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;
  const auto mix = [](std::uint64_t sum, std::uint64_t word) { return (std::rotl(sum, 29) ^ word) * odd; };
  const auto word_at = [&](std::size_t place) {
    unsigned char one[8] = {};
    std::memcpy(one, bytes.data() + place, std::min<std::size_t>(8, bytes.size() - place));
    std::uint64_t word = 0;
    if constexpr (std::endian::native == std::endian::little) std::memcpy(&word, one, 8);
    else
      for (int i = 7; i >= 0; --i) word = word << 8 | one[i];
    return word;
  };
  std::uint64_t lane[4] = {1, 2, 3, 4};  // for the speed of it
  std::size_t place = 0;
  for (; place + 32 <= bytes.size(); place += 32)
    for (std::size_t i = 0; i < 4; ++i) lane[i] = mix(lane[i], word_at(place + 8 * i));
  std::uint64_t sum = bytes.size();
  for (; place < bytes.size(); place += 8) sum = mix(sum, word_at(place));
  for (const std::uint64_t of_lane : lane) sum = mix(sum, of_lane);
  return sum ^ sum >> 32;
}

SINTER_SHARED_COLD std::uint64_t checksum_of(const host_tensor& x) {
  const std::string_view bytes(reinterpret_cast<const char*>(x.bytes.data()), x.bytes.size());
  if constexpr (std::endian::native == std::endian::little) return checksum_of(bytes);
  std::string swapped(bytes);
  swap_bytes(swapped.data(), swapped.size(), element_size(x.element));
  return checksum_of(std::string_view(swapped));
}

SINTER_SHARED_COLD std::uint64_t header_checksum(const safetensors_metadata& metadata,
                                                 const std::vector<named_tensor>& tensors) {
  std::string all;
  const auto keys = sorted_numbers(metadata.size(),
                                   [&](std::size_t a, std::size_t b) { return metadata[a].first < metadata[b].first; });
  for (const std::size_t i : keys) {
    const auto& [key, value] = metadata[i];
    if (key != "checksum") all += joined({key.size(), ' ', key, ' ', value.size(), ' ', value});
  }
  for (const auto& [name, value] : tensors) {
    all += joined({name.size(), ' ', name, ' ', element_name(value.element)});
    for (const index_t n : value.shape) all += joined({' ', n});
  }
  return checksum_of(all);
}

SINTER_SHARED_COLD void sort_by_name(std::vector<named_tensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const named_tensor& a, const named_tensor& b) { return a.name < b.name; });
}

SINTER_SHARED_COLD void write_run_file(const std::string& path, const std::vector<run_part>& parts) {
  safetensors_metadata metadata = {{"format", run_file_format},
                                   {"version", std::to_string(run_file_version)},
                                   {"kinds", run_file_kinds(parts, " ")}};
  std::vector<named_tensor> tensors;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const auto& [key, value] : parts[i].texts) metadata.emplace_back(joined({i, '.', key}), value);
    for (const auto& [name, value] : parts[i].tensors)
      tensors.emplace_back(joined({i, '.', parts[i].kind, '.', name}), value);
  }
  sort_by_name(tensors);
  std::string sums;
  for (const named_tensor& t : tensors) sums += (sums.empty() ? "" : " ") + hexadecimal(checksum_of(t.value));
  metadata.emplace_back("checksums", sums);
  metadata.emplace_back("checksum", hexadecimal(header_checksum(metadata, tensors)));
  write_safetensors(path, tensors, metadata, durability::of_the_disk);
}

SINTER_SHARED_COLD void check_run_format(const std::string& path, const safetensors_metadata& metadata) {
  if (metadata_at(metadata, "format") != run_file_format)
    refuse<io_error>({path, ": is a safetensors file, but no run checkpoint; read it by read_safetensors"});
  if (const std::string_view version = metadata_at(metadata, "version"); version != std::to_string(run_file_version))
    refuse<io_error>({path, ": is a run checkpoint of version ", quoted_name(version), "; this Sinter reads version ",
                      run_file_version, "; load it with the Sinter that saved it"});
}

SINTER_SHARED_COLD void check_run_file(const std::string& path, const safetensors_metadata& metadata,
                                       const std::vector<named_tensor>& tensors) {
  if (hexadecimal(header_checksum(metadata, tensors)) != metadata_at(metadata, "checksum"))
    refuse<io_error>({path, ": its header is damaged", run_file_advice});
  std::string_view sums = metadata_at(metadata, "checksums");
  for (const named_tensor& t : tensors) {
    if (hexadecimal(checksum_of(t.value)) != sums.substr(0, 16))
      refuse<io_error>({path, ": ", quoted_name(t.name), " is damaged", run_file_advice});
    sums.remove_prefix(std::min<std::size_t>(17, sums.size()));
  }
}

SINTER_SHARED_COLD std::vector<run_part> read_run_file(const std::string& path) {
  const safetensors file = read_safetensors(path);
  const safetensors_metadata& metadata = file.metadata();
  check_run_format(path, metadata);
  std::vector<named_tensor> tensors = file.entries();
  sort_by_name(tensors);
  check_run_file(path, metadata, tensors);
  std::vector<run_part> parts;
  std::string_view kinds = metadata_at(metadata, "kinds");
  while (!kinds.empty()) {
    const std::string kind(kinds.substr(0, kinds.find(' ')));
    kinds.remove_prefix(std::min(kind.size() + 1, kinds.size()));
    parts.emplace_back(kind, run_part_place(path, parts.size(), kind));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string of_texts = std::to_string(i) + '.', of_tensors = of_texts + parts[i].kind + '.';
    for (const auto& [key, value] : metadata)
      if (key.starts_with(of_texts)) parts[i].put(key.substr(of_texts.size()), value);
    for (const auto& [name, value] : tensors)
      if (name.starts_with(of_tensors)) parts[i].tensors.emplace_back(name.substr(of_tensors.size()), value);
  }
  return parts;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
