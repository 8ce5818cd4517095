// sinter/io/safetensors.hpp: reads safetensors, the files in which weights are passed on: a header in JSON, then bytes.
#pragma once

#include <algorithm>

#include "sinter/io/elements.hpp"
#include "sinter/io/json.hpp"
#include "sinter/io/mapping.hpp"

namespace sinter {

/// Free text under names.
using safetensors_metadata = std::vector<std::pair<std::string, std::string>>;

struct safetensors_options {
  bool map = false;  ///< maps the file into memory; tensors then share its pages instead of copying them
};

namespace detail {

struct safetensors_type {
  std::string_view name;
  std::size_t bits;
  element_kind element;
};

/// In the order of the reference implementation, which sorts by it when it writes.
inline constexpr safetensors_type safetensors_types[] = {
    {"BOOL", 8, element_kind::boolean},      {"F4", 4, element_kind::other},
    {"F6_E2M3", 6, element_kind::other},     {"F6_E3M2", 6, element_kind::other},
    {"U8", 8, element_kind::uint8},          {"I8", 8, element_kind::int8},
    {"F8_E5M2", 8, element_kind::other},     {"F8_E4M3", 8, element_kind::other},
    {"F8_E8M0", 8, element_kind::other},     {"F8_E4M3FNUZ", 8, element_kind::other},
    {"F8_E5M2FNUZ", 8, element_kind::other}, {"I16", 16, element_kind::int16},
    {"U16", 16, element_kind::uint16},       {"F16", 16, element_kind::float16},
    {"BF16", 16, element_kind::bfloat16},    {"I32", 32, element_kind::int32},
    {"U32", 32, element_kind::uint32},       {"F32", 32, element_kind::float32},
    {"C64", 64, element_kind::other},        {"F64", 64, element_kind::float64},
    {"I64", 64, element_kind::int64},        {"U64", 64, element_kind::uint64},
};

inline constexpr std::size_t safetensors_max_header = 100'000'000;
inline constexpr std::size_t safetensors_max_rank = 64;  ///< of NumPy and PyTorch
inline constexpr const char* safetensors_advice = "; it is damaged or no safetensors file: fetch or save it again";

/// A name of the file as it may stand in a message.
SINTER_SHARED_COLD std::string quoted_name(std::string_view name);

SINTER_SHARED_COLD std::vector<std::size_t> sorted_numbers(std::size_t n, const void* context,
                                                           bool (*less)(const void*, std::size_t, std::size_t));

/// The numbers from 0 to n - 1 in the order of less(a, b). The call through a pointer leaves
/// one std::sort for all orders, which is much less to compile.
template <class F>
std::vector<std::size_t> sorted_numbers(std::size_t n, const F& less) {
  return sorted_numbers(n, &less,
                        [](const void* f, std::size_t a, std::size_t b) { return (*static_cast<const F*>(f))(a, b); });
}

/// What the header says of a tensor.
struct safetensors_info {
  const safetensors_type* type = nullptr;
  std::vector<index_t> shape;
  std::size_t begin = 0, end = 0;  ///< in the data
};

/// An open file whose header has been read and checked.
class safetensors_file {
 public:
  safetensors_file(const std::string& the_path, bool map);

  /// Null if there is none of that name.
  const safetensors_info* find(std::string_view name) const;
  const safetensors_info& at(std::string_view name) const;

  /// Copies bytes of the data.
  void copy(std::size_t place, std::size_t n, char* to) const;
  const std::shared_ptr<const file_mapping>& mapping() const { return mapping_; }
  char* mapped(const safetensors_info& r) const;

  std::string path;
  std::vector<std::string> names;  ///< in the order of the header
  safetensors_metadata metadata;

 private:
  void read(std::size_t place, std::size_t n, char* to) const;
  void parse(const std::string& text);
  safetensors_info read_info(json_reader& json, const std::string& name) const;
  void check_offsets(std::size_t data) const;
  static shape_piece shape_of(const safetensors_info& r);
  std::size_t bytes_of(const safetensors_info& r, const std::string& name) const;

  descriptor file_;
  std::size_t data_begin_ = 0;
  std::shared_ptr<const file_mapping> mapping_;
  std::vector<safetensors_info> infos_;
  std::vector<std::size_t> by_name_;  ///< numbers of the tensors, sorted by name
};

#if SINTER_DEFINES

SINTER_SHARED_COLD std::string quoted_name(std::string_view name) {
  std::string text = "'";
  for (char c : name.substr(0, 100)) text += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return text + (name.size() > 100 ? "...'" : "'");
}

SINTER_SHARED_COLD std::vector<std::size_t> sorted_numbers(std::size_t n, const void* context,
                                                           bool (*less)(const void*, std::size_t, std::size_t)) {
  std::vector<std::size_t> numbers(n);
  for (std::size_t i = 0; i < n; ++i) numbers[i] = i;
  std::sort(numbers.begin(), numbers.end(), [=](std::size_t a, std::size_t b) { return less(context, a, b); });
  return numbers;
}

SINTER_SHARED_COLD safetensors_file::safetensors_file(const std::string& the_path, bool map) : path(the_path) {
  file_ = open_file(path, O_RDONLY);
  if (!file_.is_open()) refuse<io_error>({path, ": cannot open for reading: ", system_text(errno)});
  file_info info;
  if (!tell_file(file_, info)) refuse<io_error>({path, ": cannot be read: ", system_text(errno)});
  if (!is_regular(info)) refuse<io_error>({path, ": is no regular file; copy what it gives to one first"});
  const auto size = static_cast<std::size_t>(info.st_size);
  unsigned char length[8];
  if (size < sizeof length)
    refuse<io_error>({path, ": has ", size, " bytes, too few for the length of a header", safetensors_advice});
  read(0, sizeof length, reinterpret_cast<char*>(length));
  std::uint64_t header = 0;
  for (int i = 7; i >= 0; --i) header = header << 8 | length[i];
  if (length[0] == 'P' && length[1] == 'K')
    refuse<io_error>({path,
                      ": is a zip archive, as torch.save writes, and no safetensors file; write it with "
                      "safetensors.torch.save_file(model.state_dict(), path)"});
  if (header > safetensors_max_header)
    refuse<io_error>({path, ": claims a header of ", header, " bytes, but the format allows ", safetensors_max_header,
                      safetensors_advice});
  if (header > size - sizeof length)
    refuse<io_error>({path, ": claims a header of ", header, " bytes, but ", size - sizeof length,
                      " follow; it is cut short", safetensors_advice});
  data_begin_ = sizeof length + static_cast<std::size_t>(header);
  std::string text(static_cast<std::size_t>(header), '\0');
  read(sizeof length, text.size(), text.data());
  parse(text);
  check_offsets(size - data_begin_);
  if (map) mapping_ = std::make_shared<const file_mapping>(path, file_, size);
}

SINTER_SHARED_COLD const safetensors_info* safetensors_file::find(std::string_view name) const {
  std::size_t first = 0, last = by_name_.size();
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (names[by_name_[middle]] < name) first = middle + 1;
    else last = middle;
  }
  return first < by_name_.size() && names[by_name_[first]] == name ? &infos_[by_name_[first]] : nullptr;
}

SINTER_SHARED_COLD const safetensors_info& safetensors_file::at(std::string_view name) const {
  const safetensors_info* const r = find(name);
  if (r == nullptr)
    refuse<io_error>(
        {path, ": holds no tensor ", quoted_name(name), "; names() lists the ", names.size(), " that it holds"});
  return *r;
}

SINTER_SHARED_COLD void safetensors_file::copy(std::size_t place, std::size_t n, char* to) const {
  if (n == 0) return;
  if (mapping_) std::memcpy(to, mapping_->data() + data_begin_ + place, n);
  else read(data_begin_ + place, n, to);
}

SINTER_SHARED_COLD char* safetensors_file::mapped(const safetensors_info& r) const {
  return mapping_->data() + data_begin_ + r.begin;
}

SINTER_SHARED_COLD void safetensors_file::read(std::size_t place, std::size_t n, char* to) const {
  const ssize_t got = read_at(file_, to, n, place);
  if (got < 0) refuse<io_error>({path, ": reading failed: ", system_text(errno)});
  if (static_cast<std::size_t>(got) < n) refuse<io_error>({path, ": was cut short after it had been opened"});
}

SINTER_SHARED_COLD void safetensors_file::parse(const std::string& text) {
  json_reader json(text, path + ": header");
  if (!text.starts_with('{')) json.fail({"a header begins with '{'", safetensors_advice});
  bool has_metadata = false;
  json.object([&](const std::string& name) {
    if (name == "__metadata__") {
      if (std::exchange(has_metadata, true)) json.fail({"'__metadata__' stands there twice", safetensors_advice});
      json.object([&](const std::string& key) { metadata.emplace_back(key, json.string()); });
    } else {
      infos_.push_back(read_info(json, name));
      names.push_back(name);
    }
  });
  json.finish();
  by_name_ = sorted_numbers(names.size(), [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
  for (std::size_t i = 1; i < names.size(); ++i)
    if (const std::string& name = names[by_name_[i]]; name == names[by_name_[i - 1]])
      refuse<io_error>({path, ": names ", quoted_name(name), " twice", safetensors_advice});
  const std::vector<std::size_t> keys = sorted_numbers(
      metadata.size(), [&](std::size_t a, std::size_t b) { return metadata[a].first < metadata[b].first; });
  for (std::size_t i = 1; i < keys.size(); ++i)
    if (const std::string& key = metadata[keys[i]].first; key == metadata[keys[i - 1]].first)
      refuse<io_error>({path, ": its metadata has ", quoted_name(key), " twice", safetensors_advice});
}

SINTER_SHARED_COLD safetensors_info safetensors_file::read_info(json_reader& json, const std::string& name) const {
  safetensors_info r;
  unsigned seen = 0;  // a bit for each member
  const auto once = [&](unsigned bit, const char* member) {
    if ((seen & bit) != 0) json.fail({quoted_name(name), " has '", member, "' twice", safetensors_advice});
    seen |= bit;
  };
  json.object([&](const std::string& member) {
    if (member == "dtype") {
      once(1, "dtype");
      const std::string type = json.string();
      for (const safetensors_type& known : safetensors_types)
        if (known.name == type) r.type = &known;
      if (r.type == nullptr)
        json.fail({quoted_name(name), " has the unknown dtype ", quoted_name(type), "; save it as another type"});
    } else if (member == "shape") {
      once(2, "shape");
      json.array([&] {
        if (r.shape.size() == safetensors_max_rank)
          json.fail({quoted_name(name), " has more than ", safetensors_max_rank, " extents", safetensors_advice});
        r.shape.push_back(json.natural());
      });
    } else if (member == "data_offsets") {
      once(4, "data_offsets");
      int count = 0;
      json.array([&] {
        const auto offset = static_cast<std::size_t>(json.natural());
        if (++count > 2) return;
        (count == 1 ? r.begin : r.end) = offset;
      });
      if (count != 2) json.fail({"data_offsets of ", quoted_name(name), " are not two numbers", safetensors_advice});
    } else {
      json.skip();  // what later versions may add
    }
  });
  if (seen != 7) json.fail({quoted_name(name), " lacks dtype, shape or data_offsets", safetensors_advice});
  return r;
}

/// Tensors fill the data one after the other, without gaps, and each has the bytes that its shape needs.
SINTER_SHARED_COLD void safetensors_file::check_offsets(std::size_t data) const {
  const std::vector<std::size_t> order = sorted_numbers(names.size(), [&](std::size_t a, std::size_t b) {
    const safetensors_info &x = infos_[a], &y = infos_[b];
    return x.begin != y.begin ? x.begin < y.begin : x.end < y.end;
  });
  std::size_t reached = 0;
  for (const std::size_t i : order) {
    const safetensors_info& r = infos_[i];
    if (r.begin != reached || r.end < r.begin)
      refuse<io_error>({path, ": ", quoted_name(names[i]), " has data_offsets ", r.begin, " to ", r.end, " where ",
                        reached, " is the next; ",
                        r.begin < reached ? "it overlaps another tensor"
                        : r.end < r.begin ? "it ends before it begins"
                                          : "there is a gap before it",
                        safetensors_advice});
    if (const std::size_t bytes = bytes_of(r, names[i]); bytes != r.end - r.begin)
      refuse<io_error>({path, ": ", quoted_name(names[i]), " has data_offsets for ", r.end - r.begin,
                        " bytes, but its shape ", shape_of(r), " of ", r.type->name, " needs ", bytes,
                        safetensors_advice});
    reached = r.end;
  }
  if (reached != data)
    refuse<io_error>({path, ": its tensors need ", reached, " bytes of data, but ", data,
                      reached > data ? " follow the header; it is cut short" : " follow the header; it is too long",
                      safetensors_advice});
}

SINTER_SHARED_COLD shape_piece safetensors_file::shape_of(const safetensors_info& r) {
  return {r.shape.data(), static_cast<int>(r.shape.size())};
}

SINTER_SHARED_COLD std::size_t safetensors_file::bytes_of(const safetensors_info& r, const std::string& name) const {
  std::size_t bits = 0;
  try {
    bits = r.type->bits * static_cast<std::size_t>(checked_numel("safetensors", r.shape.data(),
                                                                 static_cast<int>(r.shape.size()), r.type->bits));
  } catch (const shape_error&) {
    refuse<io_error>({path, ": ", quoted_name(name), " overflows: its shape ", shape_of(r),
                      " has more elements than can be addressed", safetensors_advice});
  }
  if (bits % 8 != 0)
    refuse<io_error>({path, ": ", quoted_name(name), " is misaligned: its shape ", shape_of(r), " of ", r.type->name,
                      " does not fill whole bytes", safetensors_advice});
  return bits / 8;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// An open safetensors file: the names, types and shapes of its tensors. Elements are read where get or entry asks for
/// them. Copies of this object share the file; threads may read from it at the same time. Made by read_safetensors.
class safetensors {
 public:
  /// In the order of the header.
  const std::vector<std::string>& names() const { return file_->names; }
  std::size_t size() const { return names().size(); }
  bool contains(std::string_view name) const { return file_->find(name) != nullptr; }
  /// What `__metadata__` says, in the order of the header.
  const safetensors_metadata& metadata() const { return file_->metadata; }

  /// Errors of all that take a name: io_error if the file holds no tensor of that name.
  const std::vector<index_t>& shape(std::string_view name) const { return file_->at(name).shape; }
  element_kind kind(std::string_view name) const { return file_->at(name).type->element; }
  /// The type as the file names it, such as "F32".
  std::string_view dtype(std::string_view name) const { return file_->at(name).type->name; }

  /// The tensor of that name, on the host. With `map` in the options it shares the memory of the mapped file, if its
  /// elements are aligned there and no bool. Errors: io_error for another element type or rank.
  ///
  ///     tensor w = file.get<float, 2>("0.weight");
  template <element T, int R>
  tensor<T, R> get(std::string_view name) const {
    const detail::safetensors_info& r = file_->at(name);
    if (r.type->element != kind_of_element<T>())
      refuse(name, {"holds ", r.type->name, r.type->element == element_kind::other ? ", which no tensor can hold" : "",
                    ", not ", element_name<T>(),
                    r.type->element == element_kind::other ? "; save it as another type" : "; get_as converts"});
    const extents<R> shape = shape_as<R>(r, name);
    if constexpr (std::endian::native == std::endian::little && !std::is_same_v<T, bool>)
      if (file_->mapping() && r.end > r.begin) {
        char* const data = file_->mapped(r);
        if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0)
          return detail::access::make<T, R, cpu>(detail::mapped_storage(file_->mapping(), data, r.end - r.begin),
                                                 reinterpret_cast<T*>(data), shape, detail::row_major_strides(shape));
      }
    return fetch<T, R>(r, shape, name);
  }

  /// The same of any element type, converted: floating-point elements are rounded to the nearest. Errors: io_error for
  /// another rank, and for a number that T cannot hold, such as 0.5 as int32 or 1e300 as float.
  ///
  ///     tensor w = file.get_as<float, 2>("0.weight");   // from F16, BF16, F64, I32, ...
  template <element T, int R>
  tensor<T, R> get_as(std::string_view name) const {
    const detail::safetensors_info& r = file_->at(name);
    if (r.type->element == element_kind::other)
      refuse(name, {"holds ", r.type->name, ", which cannot be read; save it as another type"});
    return fetch<T, R>(r, shape_as<R>(r, name), name);
  }

  /// Name and tensor, whatever its type and rank. The bytes are a copy, or with `map` those of the mapped file.
  named_tensor entry(std::string_view name) const;

  /// All entries, in the order of the header.
  std::vector<named_tensor> entries() const;
  /// The same where a state is expected, as in nn::load_state(model, file).
  operator std::vector<named_tensor>() const { return entries(); }

 private:
  friend safetensors read_safetensors(const std::string&, const safetensors_options&);
  explicit safetensors(std::shared_ptr<const detail::safetensors_file> file) : file_(std::move(file)) {}

  [[noreturn]] void refuse(std::string_view name, std::initializer_list<detail::text_piece> what) const;

  template <int R>
  extents<R> shape_as(const detail::safetensors_info& r, std::string_view name) const {
    extents<R> shape;
    if (r.shape.size() != R)
      refuse(name, {"has shape ", detail::shape_piece{r.shape.data(), static_cast<int>(r.shape.size())}, " of rank ",
                    r.shape.size(), ", not ", R});
    std::copy(r.shape.begin(), r.shape.end(), shape.begin());
    return shape;
  }

  template <element T, int R>
  tensor<T, R> fetch(const detail::safetensors_info& r, const extents<R>& shape, std::string_view name) const {
    auto t = tensor<T, R>::uninitialized(shape);
    detail::fetch_elements<T>(
        r.type->element, std::endian::native == std::endian::big, static_cast<std::size_t>(shape.numel()), t.data(),
        [&](std::size_t place, std::size_t n, char* to) { file_->copy(r.begin + place, n, to); },
        file_->path + ": " + detail::quoted_name(name));
    return t;
  }

  std::shared_ptr<const detail::safetensors_file> file_;
};

/// Opens a safetensors file, reads its header and checks it against the size of the file: nothing in it is trusted.
/// The file stays open while the result or a mapped tensor lives, and must not be written to or cut short meanwhile;
/// replacing it by another of its name, as write_safetensors does, is fine. Errors: io_error with the reason for a file
/// that cannot be read or is not as the format says. https://github.com/huggingface/safetensors#format
///
///     safetensors file = read_safetensors("model.safetensors");
///     for (const std::string& name : file.names()) ...
SINTER_SHARED_COLD safetensors read_safetensors(const std::string& path, const safetensors_options& options = {});

#if SINTER_DEFINES

SINTER_SHARED_COLD named_tensor safetensors::entry(std::string_view name) const {
  const detail::safetensors_info& r = file_->at(name);
  const std::size_t bytes = r.end - r.begin, size = element_size(r.type->element);
  constexpr bool little = std::endian::native == std::endian::little;
  const auto value = [&](const char* data, std::shared_ptr<const void> owner) {
    return host_tensor(r.type->element, r.shape, std::as_bytes(std::span(data, bytes)), std::move(owner));
  };
  if (little && file_->mapping()) return {std::string(name), value(file_->mapped(r), file_->mapping())};
  const auto copy = std::make_shared<std::vector<char>>(bytes);
  file_->copy(r.begin, bytes, copy->data());
  if (!little && size > 1) detail::swap_bytes(copy->data(), bytes, size);
  return {std::string(name), value(copy->data(), copy)};
}

SINTER_SHARED_COLD std::vector<named_tensor> safetensors::entries() const {
  std::vector<named_tensor> all;
  for (const std::string& name : names()) all.push_back(entry(name));
  return all;
}

SINTER_SHARED_COLD void safetensors::refuse(std::string_view name,
                                            std::initializer_list<detail::text_piece> what) const {
  detail::refuse<io_error>({file_->path, ": ", detail::quoted_name(name), " ", detail::joined(what)});
}

SINTER_SHARED_COLD safetensors read_safetensors(const std::string& path, const safetensors_options& options) {
  return safetensors(std::make_shared<const detail::safetensors_file>(path, options.map));
}

#endif  // SINTER_DEFINES

}  // namespace sinter
