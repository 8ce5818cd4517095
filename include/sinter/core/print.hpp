// sinter/core/print.hpp: tensors as text.
#pragma once

#include <charconv>
#include <string>

#include "sinter/core/create.hpp"

namespace sinter {

/// How much of a tensor is shown.
struct print_options {
  int precision = 4;         ///< significant digits of floating-point values
  index_t threshold = 1000;  ///< tensors with more elements are summarised
  index_t edge = 3;          ///< elements at each end of a summarised axis
};

namespace detail {

template <class T>
std::string value_text(T x, const print_options& options) {
  if constexpr (std::is_same_v<T, bool>) return x ? "true" : "false";
  else if constexpr (std::is_integral_v<T>) return std::to_string(x);
  else if (x != x) return "nan";
  else {
    char text[128];  // like printf's %g, in every locale
    const int digits = options.precision < 100 ? options.precision : 100;
    return {text,
            std::to_chars(text, text + sizeof text, static_cast<double>(x), std::chars_format::general, digits).ptr};
  }
}

template <class T>
struct text_builder {
  const print_options& options;
  int rank;
  const index_t* shape;
  const index_t* strides;
  bool summarise;
  std::size_t width;
  std::string text;

  /// Visits the indices of an axis that are shown; gap() where some are left out.
  template <class Each, class Gap>
  void along(int axis, const Each& each, const Gap& gap) {
    const index_t n = shape[axis];
    const bool cut = summarise && n > 2 * options.edge;
    for (index_t i = 0; i < n; ++i) {
      if (cut && i == options.edge) {
        gap();
        i = n - options.edge;
        if (i == n) break;
      }
      each(i);
    }
  }

  void measure(const T* x, int axis) {
    if (axis == rank) {
      const std::size_t w = value_text(*x, options).size();
      if (w > width) width = w;
      return;
    }
    along(axis, [&](index_t i) { measure(x + i * strides[axis], axis + 1); }, [] {});
  }

  void build(const T* x, int axis) {
    if (axis == rank) {
      const std::string v = value_text(*x, options);
      text.append(width - v.size(), ' ');
      text += v;
      return;
    }
    text += '[';
    bool first = true;
    const auto separate = [&] {
      if (!first) {
        text += ',';
        if (axis == rank - 1) text += ' ';
        else
          text.append(static_cast<std::size_t>(rank - 1 - axis), '\n').append(static_cast<std::size_t>(axis + 1), ' ');
      }
      first = false;
    };
    along(
        axis,
        [&](index_t i) {
          separate();
          build(x + i * strides[axis], axis + 1);
        },
        [&] {
          separate();
          text += "...";
        });
    text += ']';
  }
};

/// Are more than `most` brackets or elements in a printed tensor?
inline bool prints_more_than(index_t most, const index_t* shape, int rank) {
  index_t n = 1;
  for (int d = 0; d < rank && shape[d] > 0; ++d) {
    if (n > most / shape[d]) return true;
    n *= shape[d];
  }
  return false;
}

}  // namespace detail

/// The elements in nested brackets, then element type, shape and device; large tensors are summarised. A tensor on a
/// GPU is copied to the host first. Errors: value_error for a negative option.
///
///     [[1, 2],
///      [3, 4]] float (2, 2) cpu
template <class T, auto Shape, device D>
std::string to_string(const tensor<T, Shape, D>& t, const print_options& options = {}) {
  if (options.precision < 0 || options.threshold < 0 || options.edge < 0)
    throw value_error("to_string: precision, threshold and edge must not be negative");
  if (!t.defined()) return "(empty tensor) " + std::string(element_name<T>()) + " " + device_name<D>();
  if constexpr (!is_cpu_v<D>) {
    std::string text = to_string(t.template to<cpu>(), options);
    return text.substr(0, text.size() - device_name<cpu>().size()) + device_name<D>();
  } else {
    detail::text_builder<T> b{options,
                              t.rank,
                              t.shape().data(),
                              t.strides().data(),
                              detail::prints_more_than(options.threshold, t.shape().data(), t.rank),
                              0,
                              {}};
    b.measure(t.data(), 0);
    b.build(t.data(), 0);
    return b.text + " " + element_name<T>() + " " + detail::shape_text(t.shape()) + " " + device_name<D>();
  }
}

namespace detail {

// A std::basic_ostream, told without its header; not what has an operator<< for everything itself, as Catch2's streams
// have.
template <class Stream>
concept text_stream = requires(Stream& s, const std::string& text) {
  typename Stream::char_type;
  s.rdbuf();
  s << text;
};

}  // namespace detail

/// Writes a shape, such as (2, 3), to a stream.
template <detail::text_stream Stream, int R>
Stream& operator<<(Stream& out, const extents<R>& shape) {
  out << detail::shape_text(shape);
  return out;
}

/// Writes to_string(t) to a stream.
template <detail::text_stream Stream, class T, auto Shape, device D>
Stream& operator<<(Stream& out, const tensor<T, Shape, D>& t) {
  out << to_string(t);
  return out;
}

}  // namespace sinter
