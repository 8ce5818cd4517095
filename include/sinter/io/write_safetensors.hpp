// sinter/io/write_safetensors.hpp: writes safetensors files, byte for byte as the reference implementation does.
#pragma once

#include "sinter/io/safetensors.hpp"
#include "sinter/io/write.hpp"

namespace sinter {

namespace detail {

/// Errors: value_error for an entry that cannot be written.
SINTER_SHARED_COLD void check_entry(const named_tensor& entry);

/// The place of a type among those of the format.
constexpr int safetensors_index(element_kind kind) {
  int i = 0;
  while (safetensors_types[i].element != kind) ++i;
  return i;
}

/// The length, and the header padded with blanks to a multiple of 8 bytes.
SINTER_SHARED_COLD std::string safetensors_head(const std::vector<named_tensor>& entries,
                                                const std::vector<std::size_t>& order,
                                                const safetensors_metadata& metadata);

/// The same, until it is with the system or on the disk.
SINTER_SHARED_COLD void write_safetensors(const std::string& path, const std::vector<named_tensor>& entries,
                                          const safetensors_metadata& metadata, durability until);

#if SINTER_DEFINES

SINTER_SHARED_COLD void check_entry(const named_tensor& entry) {
  const host_tensor& e = entry.value;
  const auto rank = static_cast<int>(e.shape.size());
  const std::string name = quoted_name(entry.name);
  if (valid_utf8(entry.name) < entry.name.size())
    refuse<value_error>({"write_safetensors: the name ", name, " is not UTF-8"});
  if (entry.name == "__metadata__")
    refuse<value_error>({"write_safetensors: a tensor cannot have the name '__metadata__'; pass metadata as such"});
  if (e.element == element_kind::other)
    refuse<value_error>(
        {"write_safetensors: the elements of ", name, " have no type that can be written; convert them"});
  if (e.shape.size() > safetensors_max_rank)
    refuse<value_error>(
        {"write_safetensors: ", name, " has ", rank, " extents; at most ", safetensors_max_rank, " can be written"});
  const std::size_t size = element_size(e.element);
  const auto n = static_cast<std::size_t>(checked_numel("write_safetensors", e.shape.data(), rank, 8));
  if (n * size != e.bytes.size())
    refuse<value_error>({"write_safetensors: ", name, " has ", e.bytes.size(), " bytes, but its shape ",
                         shape_piece{e.shape.data(), rank}, " of ", element_name(e.element), " needs ", n * size});
}

SINTER_SHARED_COLD std::string safetensors_head(const std::vector<named_tensor>& entries,
                                                const std::vector<std::size_t>& order,
                                                const safetensors_metadata& metadata) {
  std::string text = "{";
  const auto keys = sorted_numbers(metadata.size(),
                                   [&](std::size_t a, std::size_t b) { return metadata[a].first < metadata[b].first; });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto& [key, value] = metadata[keys[i]];
    if (valid_utf8(key) < key.size() || valid_utf8(value) < value.size())
      refuse<value_error>({"write_safetensors: metadata ", quoted_name(key), " is not UTF-8"});
    if (i > 0 && key == metadata[keys[i - 1]].first)
      refuse<value_error>({"write_safetensors: metadata has ", quoted_name(key), " twice"});
    text += (i == 0 ? "\"__metadata__\":{" : ",") + json_string(key) + ':' + json_string(value);
  }
  if (!metadata.empty()) text += '}';
  std::size_t at = 0;
  for (const std::size_t i : order) {
    const auto& [name, e] = entries[i];
    if (text.size() > 1) text += ',';
    text += json_string(name) +
            joined({":{\"dtype\":\"", safetensors_types[safetensors_index(e.element)].name, "\",\"shape\":["});
    for (std::size_t d = 0; d < e.shape.size(); ++d) text += (d > 0 ? "," : "") + std::to_string(e.shape[d]);
    text += joined({"],\"data_offsets\":[", at, ',', at + e.bytes.size(), "]}"});
    at += e.bytes.size();
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > safetensors_max_header)
    refuse<value_error>({"write_safetensors: the header would have ", text.size(), " bytes; the format allows ",
                         safetensors_max_header});
  std::string length;
  for (int shift = 0; shift < 64; shift += 8)
    length += static_cast<char>(static_cast<std::uint64_t>(text.size()) >> shift & 0xff);
  return length + text;
}

SINTER_SHARED_COLD void write_safetensors(const std::string& path, const std::vector<named_tensor>& entries,
                                          const safetensors_metadata& metadata, durability until) {
  for (const named_tensor& e : entries) check_entry(e);
  const auto by_name =
      sorted_numbers(entries.size(), [&](std::size_t a, std::size_t b) { return entries[a].name < entries[b].name; });
  for (std::size_t i = 1; i < by_name.size(); ++i)
    if (const std::string& name = entries[by_name[i]].name; name == entries[by_name[i - 1]].name)
      refuse<value_error>({"write_safetensors: two entries have the name ", quoted_name(name)});
  const auto order = sorted_numbers(entries.size(), [&](std::size_t a, std::size_t b) {
    const int x = safetensors_index(entries[a].value.element), y = safetensors_index(entries[b].value.element);
    return x != y ? x > y : entries[a].name < entries[b].name;
  });
  const std::string head = safetensors_head(entries, order, metadata);
  std::vector<std::string_view> pieces = {head};
  std::vector<std::string> swapped(std::endian::native == std::endian::big ? entries.size() : 0);
  for (const std::size_t i : order) {
    const std::span<const std::byte> bytes = entries[i].value.bytes;
    pieces.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if constexpr (std::endian::native == std::endian::big) {
      swapped[i] = pieces.back();
      swap_bytes(swapped[i].data(), bytes.size(), element_size(entries[i].value.element));
      pieces.back() = swapped[i];
    }
  }
  write_pieces(path, {pieces.data(), pieces.size()}, until);
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Writes the entries as a safetensors file, which is complete or as it was before. Tensors come in the order of the
/// reference implementation, wide types first and then by name, so that elements are aligned; the same entries give the
/// same bytes whatever their order. Errors: value_error for two entries of one name, for bytes that do not fit the
/// shape and type of an entry, for a type without a name, and for names or metadata that are not UTF-8; shape_error for
/// a negative extent; io_error if the file cannot be written.
///
///     write_safetensors("model.safetensors", {{"weight", w}, {"bias", b}}, {{"epoch", "3"}});
SINTER_SHARED_COLD void write_safetensors(const std::string& path, const std::vector<named_tensor>& entries,
                                          const safetensors_metadata& metadata = {});

#if SINTER_DEFINES

SINTER_SHARED_COLD void write_safetensors(const std::string& path, const std::vector<named_tensor>& entries,
                                          const safetensors_metadata& metadata) {
  detail::write_safetensors(path, entries, metadata, detail::durability::of_the_system);
}

#endif  // SINTER_DEFINES

}  // namespace sinter
