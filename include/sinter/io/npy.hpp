// sinter/io/npy.hpp: NumPy's .npy files, one array each, of versions 1.0, 2.0 and 3.0.
#pragma once

#include "sinter/io/elements.hpp"
#include "sinter/io/file.hpp"
#include "sinter/io/write.hpp"

namespace sinter {

struct npy_has_no_bfloat16;
struct use_float_and_cast;

struct npy_options {
  index_t max_unpacked = default_max_unpacked;  ///< bytes that a .gz file may hold
};

namespace detail {

/// What the header of a .npy file says.
struct npy_header {
  element_kind element = element_kind::other;
  bool swapped = false;  ///< not in the machine's byte order
  bool fortran_order = false;
  int rank = 0;
  index_t shape[std::size_t{max_rank}] = {};
};

inline constexpr std::size_t npy_max_header = std::size_t{1} << 20;

struct npy_type {
  std::string_view code;
  element_kind element;
};
inline constexpr npy_type npy_types[] = {
    {"b1", element_kind::boolean}, {"u1", element_kind::uint8},   {"i1", element_kind::int8},
    {"i2", element_kind::int16},   {"i4", element_kind::int32},   {"i8", element_kind::int64},
    {"f2", element_kind::float16}, {"f4", element_kind::float32}, {"f8", element_kind::float64},
    {"u2", element_kind::uint16},  {"u4", element_kind::uint32},  {"u8", element_kind::uint64},
};

/// Reads the one literal of Python that a header consists of: a dict of 'descr', 'fortran_order' and 'shape'.
class npy_header_reader {
 public:
  npy_header_reader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  SINTER_COLD npy_header read() {
    unsigned seen = 0;
    const auto once = [&](unsigned bit, const std::string& key) {
      if ((seen & bit) != 0) fail({"has '", key, "' twice"});
      seen |= bit;
    };
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        once(1, key);
        descr();
      } else if (key == "fortran_order") {
        once(2, key);
        fortran_order();
      } else if (key == "shape") {
        once(4, key);
        shape();
      } else {
        fail({"has an unknown key"});
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ < text_.size()) fail({"goes on after the dict"});
    if (seen != 7) fail({"lacks 'descr', 'fortran_order' or 'shape'"});
    return header_;
  }

 private:
  [[noreturn]] SINTER_COLD void fail(std::initializer_list<text_piece> what) const {
    refuse<io_error>({path_, ": its npy header ", joined(what), " (byte ", at_,
                      "); it is damaged or no .npy file: save it again with numpy.save"});
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  SINTER_COLD void expect(char c) {
    if (!accept(c)) fail({"has no '", c, "' where one is expected"});
  }
  SINTER_COLD std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail({"has no string where one is expected"});
    const std::size_t begin = ++at_, end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail({"has a string without an end"});
    const std::string_view value = text_.substr(begin, end - begin);
    if (value.find('\\') != std::string_view::npos) fail({"has an escape in a string"});
    at_ = end + 1;
    return std::string(value);
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  SINTER_COLD void descr() {
    if (peek() == '[' || peek() == '(')
      refuse<io_error>({path_, ": holds records of several fields; save each field of the array for itself"});
    const std::string descr = string();
    std::string_view code = descr;
    char order = '=';
    if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) {
      order = code[0];
      code.remove_prefix(1);
    }
    if (code.starts_with('O'))
      refuse<io_error>({path_,
                        ": holds Python objects in a pickle, which could run any program and is not read; "
                        "save the array as numbers, as with astype(numpy.float32)"});
    for (const npy_type& known : npy_types)
      if (known.code == code) header_.element = known.element;
    const std::size_t size = element_size(header_.element);
    if (size == 0 || (size > 1 && order == '|')) {
      std::string shown;
      for (char c : descr.substr(0, 24)) shown += c >= ' ' && c <= '~' ? c : '?';
      refuse<io_error>({path_, ": holds elements of NumPy's type '", shown,
                        "', which cannot be read; save the array as numbers, as with astype(numpy.float32)"});
    }
    constexpr bool little = std::endian::native == std::endian::little;
    header_.swapped = size > 1 && order == (little ? '>' : '<');
  }

  SINTER_COLD void fortran_order() {
    header_.fortran_order = accept_word("True");
    if (!header_.fortran_order && !accept_word("False")) fail({"has a 'fortran_order' other than True and False"});
  }

  SINTER_COLD void shape() {
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail({"has a shape that is no tuple of integers"});
      if (header_.rank == max_rank) fail({"has more than ", max_rank, " extents"});
      header_.shape[header_.rank++] = natural();
      comma = accept(',');
    }
    if (header_.rank == 1 && !comma) fail({"has a shape that is no tuple"});  // (3) is a number
  }

  SINTER_COLD index_t natural() {
    const char first = peek();
    if (first < '0' || first > '9') fail({"has a shape that is no tuple of integers of 0 or more"});
    index_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const index_t digit = text_[at_] - '0';
      if (value > (INT64_MAX - digit) / 10) fail({"has an extent that overflows an integer of 64 bits"});
      value = value * 10 + digit;
    }
    if (first == '0' && value != 0) fail({"has an extent that begins with 0"});
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 writes long integers
    return value;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
  npy_header header_;
};

/// The bytes up to the elements, with the header in them.
SINTER_SHARED_COLD npy_header read_npy_header(byte_source& source, const std::string& path);

/// The elements of a .npy file, as they lie there, and the shape that they have in that order.
template <element T, int R>
tensor<T, R> npy_elements(const std::string& path, byte_source& source, const npy_header& header) {
  extents<R> shape;
  for (int d = 0; d < R; ++d) shape[d] = header.shape[header.fortran_order ? R - 1 - d : d];
  const std::size_t size = element_size(header.element);
  index_t n = 0;
  try {
    n = checked_numel("read_npy", shape.data(), R, size > sizeof(T) ? size : sizeof(T));
  } catch (const shape_error& e) {
    refuse<io_error>({path, ": ", e.what(), "; it is damaged: save it again with numpy.save"});
  }
  std::string data;
  const std::size_t bytes = static_cast<std::size_t>(n) * size;
  const std::size_t got = read_more(source, data, bytes);
  if (got < bytes)
    refuse<io_error>({path, ": cut short: ", got, " bytes of data where its shape ", shape_piece{header.shape, R},
                      " needs ", bytes, "; fetch or save it again"});
  char extra;
  if (!source.at_end() && source.read(&extra, 1) == 1)
    refuse<io_error>(
        {path, ": longer than its shape ", shape_piece{header.shape, R}, " needs; only files of one array are read"});
  auto t = tensor<T, R>::uninitialized(shape);
  fetch_elements<T>(
      header.element, header.swapped, static_cast<std::size_t>(n), t.data(),
      [&](std::size_t place, std::size_t count, char* to) { std::memcpy(to, data.data() + place, count); }, path);
  return t;
}

template <element T, int R>
tensor<T, R> read_npy(const std::string& path, const npy_options& options, bool converts) {
  byte_source source(path, options.max_unpacked);
  const npy_header header = read_npy_header(source, path);
  if (!converts && header.element != kind_of_element<T>())
    refuse<io_error>({path, ": holds elements of type ", element_name(header.element), ", not ", element_name<T>(),
                      "; read_npy_as converts"});
  if (header.rank != R)
    refuse<io_error>({path, ": holds an array of shape ", shape_piece{header.shape, header.rank}, " of rank ",
                      header.rank, ", not ", R});
  tensor<T, R> t = npy_elements<T, R>(path, source, header);
  if constexpr (R > 1)
    if (header.fortran_order) {
      index_t reversed[std::size_t{R}];
      for (int d = 0; d < R; ++d) reversed[d] = R - 1 - d;
      return t.permute(reversed).contiguous();
    }
  return t;
}

/// The bytes in front of the elements, a multiple of 64, as NumPy writes them.
SINTER_SHARED_COLD std::string npy_head(element_kind element, const index_t* shape, int rank);

#if SINTER_DEFINES

SINTER_SHARED_COLD npy_header read_npy_header(byte_source& source, const std::string& path) {
  constexpr std::string_view magic = "\x93NUMPY";
  const auto read = [&](std::string& to, std::size_t n) {
    if (read_more(source, to, n) < n)
      refuse<io_error>({path, ": cut short: incomplete npy header; fetch or save it again"});
  };
  std::string head;
  read_more(source, head, 8);
  if (head.starts_with("PK\3\4"))
    refuse<io_error>({path, ": is a .npz archive; unpack it and read the .npy files in it"});
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
    refuse<io_error>(
        {path, ": is a pickle, which could run any program and is not read; save the array with numpy.save"});
  if (!head.starts_with(magic)) refuse<io_error>({path, ": not a .npy file; save the array with numpy.save"});
  if (head.size() < 8) read(head, 8);  // says that it is cut short
  const int version = static_cast<unsigned char>(head[6]), revision = static_cast<unsigned char>(head[7]);
  if (version < 1 || version > 3 || revision != 0)
    refuse<io_error>(
        {path, ": is of version ", version, '.', revision, " of the npy format; versions 1.0, 2.0 and 3.0 are known"});
  std::string length, text;
  read(length, version == 1 ? 2 : 4);
  std::size_t size = 0;
  for (std::size_t i = length.size(); i-- > 0;) size = size << 8 | static_cast<unsigned char>(length[i]);
  if (size > npy_max_header)
    refuse<io_error>({path, ": claims an npy header of ", size, " bytes; more than ", npy_max_header,
                      " are not read: save the array again with numpy.save"});
  read(text, size);
  return npy_header_reader(text, path).read();
}

SINTER_SHARED_COLD std::string npy_head(element_kind element, const index_t* shape, int rank) {
  std::string text = "{'descr': '";
  for (const npy_type& known : npy_types)
    if (known.element == element) {
      text += element_size(element) == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
      text += known.code;
    }
  text += joined({"', 'fortran_order': False, 'shape': ", rank == 0 ? "()" : shape_text(shape, rank), ", }"});
  const std::size_t before = 10;  // magic, version and length
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(text.size() & 0xff) + static_cast<char>(text.size() >> 8) +
         text;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// The array of a .npy file of elements T and rank R, as it is or (a name ending in .gz) compressed; row-major,
/// whatever its order in the file. Types are bool, the integers of tensors, half, float and double, in either byte
/// order. The header is not trusted: memory grows with the bytes that are there. Errors: io_error for a file that is no
/// .npy file, holds another type or rank, records or Python objects, or is shorter or longer than its header says.
/// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
///
///     tensor x = read_npy<float, 2>("x.npy");
template <element T, int R>
  requires(!std::is_same_v<T, bfloat16> && R >= 0 && R <= max_rank)
SINTER_COLD tensor<T, R> read_npy(const std::string& path, const npy_options& options = {}) {
  return detail::read_npy<T, R>(path, options, false);
}
template <element T, int R, class Problem = npy_has_no_bfloat16, class Fix = use_float_and_cast>
  requires std::is_same_v<T, bfloat16>
tensor<T, R> read_npy(const std::string& path, const npy_options& options = {}) = delete;

/// The same of any type of numbers that a .npy file holds, unsigned ones included, converted. Errors: also io_error for
/// a number that T cannot hold, such as 0.5 as int32 or 1e300 as float.
///
///     tensor x = read_npy_as<float, 2>("doubles.npy");
template <element T, int R>
  requires(R >= 0 && R <= max_rank)
SINTER_COLD tensor<T, R> read_npy_as(const std::string& path, const npy_options& options = {}) {
  return detail::read_npy<T, R>(path, options, true);
}

/// Writes a tensor, of any device, as a .npy file of version 1.0, row-major and in the byte order of the machine, byte
/// for byte as numpy.save does; the file is complete or as it was before. Errors: value_error for an undefined tensor,
/// io_error if the file cannot be written.
///
///     write_npy("x.npy", x);
template <element T, auto Shape, device D>
  requires(!std::is_same_v<T, bfloat16>)
void write_npy(const std::string& path, const tensor<T, Shape, D>& x) {
  const named_tensor entry(path, x);
  const host_tensor& dense = entry.value;
  const std::string head = detail::npy_head(dense.element, dense.shape.data(), static_cast<int>(dense.shape.size()));
  const std::string_view pieces[] = {head, {reinterpret_cast<const char*>(dense.bytes.data()), dense.bytes.size()}};
  detail::write_pieces(path, {pieces, 2});
}
template <element T, auto Shape, device D, class Problem = npy_has_no_bfloat16, class Fix = use_float_and_cast>
  requires std::is_same_v<T, bfloat16>
void write_npy(const std::string& path, const tensor<T, Shape, D>& x) = delete;

}  // namespace sinter
