// sinter/expr/print.hpp: expressions as text.
#pragma once

#include "sinter/core/print.hpp"
#include "sinter/expr/evaluate.hpp"

namespace sinter {

/// The value of an expression as text, as of the tensor it evaluates to.
template <expression E>
  requires(!detail::is_tensor<detail::bare<E>>)
std::string to_string(const E& e, const print_options& options = {}) {
  return to_string(detail::plain(eval(e)), options);
}

/// Writes the value of an expression to a stream, as the tensor it evaluates to.
template <class Stream, expression E>
  requires(!detail::is_tensor<E> && !detail::is_variable<E> &&
           requires(Stream& s, const std::string& text) { s << text; })
Stream& operator<<(Stream& out, const E& e) {
  out << eval(e);
  return out;
}

}  // namespace sinter
