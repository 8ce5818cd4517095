// sinter/core/report.hpp: reports that are written to a stream as their text.
#pragma once

#include <string>

namespace sinter::detail {

/// Base of reports that have text(). The operator is a friend, so that only reports see it: a free one would be tried
/// for every `tensor << value`, and its requirement would ask for itself.
template <class Self>
struct report {
  /// Writes text() to a stream.
  template <class Stream>
    requires requires(Stream& s, const std::string& text) { s << text; }
  friend Stream& operator<<(Stream& out, const Self& r) {
    out << r.text();
    return out;
  }
};

}  // namespace sinter::detail
