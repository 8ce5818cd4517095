// sinter/core/error.hpp: the exceptions of the library; each text names the operation, the sizes, and what to do.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sinter/config.hpp"
#if SINTER_DEFINES
#include <charconv>
#endif  // SINTER_DEFINES

namespace sinter {

/// Base of every exception the library throws on purpose.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Extents that do not fit the operation.
class shape_error : public error {
 public:
  using error::error;
};

/// An index, axis or class label outside its range.
class index_error : public error {
 public:
  using error::error;
};

/// An argument whose value makes no sense, such as a learning rate that is not finite.
class value_error : public error {
 public:
  using error::error;
};

/// A device that is not there, or memory that is not where its type says.
class device_error : public error {
 public:
  using error::error;
};

/// A file that is missing, cut short or not in the expected format.
class io_error : public error {
 public:
  using error::error;
};

/// Misuse of the tape: no graph, a freed graph, a saved tensor that was modified.
class autograd_error : public error {
 public:
  using error::error;
};

/// A device has no memory left for an allocation.
class out_of_memory : public error {
 public:
  using error::error;
};

namespace detail {

struct shape_piece {
  const std::int64_t* extents;
  int rank;
};

/// A piece of a message: text, a number, or the extents of a shape. It only refers to what it was made of.
class text_piece {
 public:
  text_piece(std::string_view text) : kind_(kind::text), text_(text.data()), size_(text.size()) {}
  text_piece(const char* text) : text_piece(std::string_view(text)) {}
  text_piece(const std::string& text) : text_piece(std::string_view(text)) {}
  text_piece(char letter) : kind_(kind::letter), integer_(letter) {}
  template <std::signed_integral I>
  text_piece(I number) : kind_(kind::integer), integer_(number) {}
  template <std::unsigned_integral I>
  text_piece(I number) : kind_(kind::natural), natural_(number) {}
  template <std::floating_point F>
  text_piece(F number) : kind_(sizeof(F) == 4 ? kind::single : kind::real), real_(static_cast<double>(number)) {}
  text_piece(shape_piece shape)
      : kind_(kind::shape), extents_(shape.extents), size_(static_cast<std::size_t>(shape.rank)) {}
  template <class E>
    requires requires { E::rank; }
  text_piece(const E& extents) : text_piece(shape_piece{extents.data(), E::rank}) {}

  void append_to(std::string& s) const;

 private:
  /// As few digits as tell the number from its neighbours.
  template <class F>
  static void append_real(std::string& s, F number);

  enum class kind : std::uint8_t { text, letter, integer, natural, single, real, shape } kind_;
  union {
    const char* text_;
    const std::int64_t* extents_;
    long long integer_;
    unsigned long long natural_;
    double real_;
  };
  std::size_t size_ = 0;
};

/// The pieces one after the other. Messages are put together here, not where they are thrown: strings joined by + are
/// inlined, and were a sixth of a program's code.
SINTER_SHARED_COLD std::string joined(std::initializer_list<text_piece> pieces);

/// Throws Error with the pieces as its text.
template <class Error>
[[noreturn]] SINTER_COLD void refuse(std::initializer_list<text_piece> pieces) {
  throw Error(joined(pieces));
}

#if SINTER_DEFINES

template <class F>
void text_piece::append_real(std::string& s, F number) {
  char digits[32];
  s.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}
SINTER_SHARED_COLD void text_piece::append_to(std::string& s) const {
  switch (kind_) {
    case kind::text:
      s.append(text_, size_);
      return;
    case kind::integer:
      s += std::to_string(integer_);
      return;
    case kind::natural:
      s += std::to_string(natural_);
      return;
    case kind::letter:
      s += static_cast<char>(integer_);
      return;
    case kind::single:
      return append_real(s, static_cast<float>(real_));
    case kind::real:
      return append_real(s, real_);
    case kind::shape:
      break;
  }
  s += '(';
  for (std::size_t i = 0; i < size_; ++i) {
    if (i > 0) s += ", ";
    s += std::to_string(extents_[i]);
  }
  s += size_ == 1 ? ",)" : ")";
}

SINTER_SHARED_COLD std::string joined(std::initializer_list<text_piece> pieces) {
  std::string s;
  for (const text_piece& p : pieces) p.append_to(s);
  return s;
}

#endif  // SINTER_DEFINES

#if SINTER_COMPILED
SINTER_INSTANCE void refuse<shape_error>(std::initializer_list<text_piece>);
SINTER_INSTANCE void refuse<index_error>(std::initializer_list<text_piece>);
SINTER_INSTANCE void refuse<value_error>(std::initializer_list<text_piece>);
SINTER_INSTANCE void refuse<device_error>(std::initializer_list<text_piece>);
SINTER_INSTANCE void refuse<io_error>(std::initializer_list<text_piece>);
SINTER_INSTANCE void refuse<autograd_error>(std::initializer_list<text_piece>);
SINTER_INSTANCE void refuse<out_of_memory>(std::initializer_list<text_piece>);
#endif

}  // namespace detail
}  // namespace sinter
