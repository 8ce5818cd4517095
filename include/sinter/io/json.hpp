// sinter/io/json.hpp: a strict reader of untrusted JSON texts (RFC 8259), and how to write strings.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sinter/core/error.hpp"
#include "sinter/io/utf8.hpp"

namespace sinter::detail {

/// Walks over a JSON text value by value, in the order in which its user asks. Takes what RFC 8259 allows and nothing
/// else; values lie in at most `max_depth` objects and arrays. The text must live on; `source` begins messages. Errors:
/// io_error with the source and the byte.
class json_reader {
 public:
  static constexpr int max_depth = 64;

  json_reader(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {
    if (const std::size_t good = valid_utf8(text_); good < text_.size()) {
      at_ = good;
      fail({"not UTF-8"});
    }
  }

  /// Calls member(name) for each member of an object; it has to read the value.
  template <class F>
  void object(F member) {
    enter('{', "an object");
    if (!accept('}')) do {
        const std::string name = string();
        expect(':', "':' after the name of a member");
        member(name);
      } while (accept(',') || (expect('}', "',' or '}' after a member"), false));
    --depth_;
  }

  /// Calls element() for each element of an array; it has to read the element.
  template <class F>
  void array(F element) {
    enter('[', "an array");
    if (!accept(']')) do
        element();
      while (accept(',') || (expect(']', "',' or ']' after an element"), false));
    --depth_;
  }

  SINTER_COLD std::string string() {
    expect('"', "a string");
    std::string value;
    for (;;) {
      const char c = next("a string has no end");
      if (c == '"') return value;
      if (static_cast<unsigned char>(c) < 0x20) fail({"a control character in a string; write it as \\u00XX"});
      if (c != '\\') value += c;
      else escape(value);
    }
  }

  /// An integer from 0 to 2^63 - 1, without a fraction or an exponent.
  SINTER_COLD std::int64_t natural() {
    skip_blanks();
    const std::string_view digits = number();
    if (digits.find_first_not_of("0123456789") != std::string_view::npos)
      fail({digits.substr(0, 24), " where an integer of 0 or more is expected"});
    std::int64_t value = 0;
    for (char c : digits) {
      if (value > (INT64_MAX - (c - '0')) / 10) fail({digits.substr(0, 24), " overflows an integer of 64 bits"});
      value = value * 10 + (c - '0');
    }
    return value;
  }

  /// Reads any value and forgets it.
  SINTER_COLD void skip() {
    skip_blanks();
    switch (peek()) {
      case '{':
        return object([&](const std::string&) { skip(); });
      case '[':
        return array([&] { skip(); });
      case '"':
        string();
        return;
      default:
        for (std::string_view word : {"true", "false", "null"})
          if (text_.substr(at_).starts_with(word)) {
            at_ += word.size();
            return;
          }
        number();
    }
  }

  /// Errors: io_error if anything but blanks is left.
  SINTER_COLD void finish() {
    skip_blanks();
    if (at_ < text_.size()) fail({"more text after the end of the object"});
  }

  /// Throws io_error that names the source and the byte reached.
  [[noreturn]] SINTER_COLD void fail(std::initializer_list<text_piece> what) const {
    refuse<io_error>({source_, ", byte ", at_, ": ", joined(what)});
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next(const char* otherwise) {
    if (at_ == text_.size()) fail({otherwise});
    return text_[at_++];
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  SINTER_COLD void expect(char c, const char* what) {
    if (!accept(c)) fail({what, " is expected"});
  }
  SINTER_COLD void enter(char open, const char* what) {
    expect(open, what);
    if (++depth_ > max_depth) fail({"more than ", max_depth, " objects and arrays within each other"});
  }

  /// The text of a number.
  SINTER_COLD std::string_view number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      if (peek() < '0' || peek() > '9') fail({"a value is expected"});
      while (peek() >= '0' && peek() <= '9') ++at_;
    };
    if (peek() == '-') ++at_;
    if (peek() == '0') ++at_;
    else digits();
    if (peek() >= '0' && peek() <= '9') fail({"a number begins with 0"});
    if (peek() == '.') {
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
    return text_.substr(begin, at_ - begin);
  }

  SINTER_COLD void escape(std::string& to) {
    const char c = next("a string has no end");
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t i = letters.find(c); i != std::string_view::npos) {
      to += meanings[i];
      return;
    }
    if (c != 'u') fail({"an unknown escape in a string"});
    std::uint32_t code = four_digits();
    if (code >= 0xDC00 && code < 0xE000) fail({"half of a surrogate pair in a string"});
    if (code >= 0xD800 && code < 0xDC00) {
      if (next("a string has no end") != '\\' || next("a string has no end") != 'u')
        fail({"half of a surrogate pair in a string"});
      const std::uint32_t low = four_digits();
      if (low < 0xDC00 || low >= 0xE000) fail({"half of a surrogate pair in a string"});
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(to, code);
  }

  SINTER_COLD std::uint32_t four_digits() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = next("a string has no end");
      const bool digit = c >= '0' && c <= '9', lower = c >= 'a' && c <= 'f', upper = c >= 'A' && c <= 'F';
      if (!digit && !lower && !upper) fail({"\\u is not followed by four hexadecimal digits"});
      code = code << 4 | static_cast<std::uint32_t>(digit ? c - '0' : lower ? c - 'a' + 10 : c - 'A' + 10);
    }
    return code;
  }

  static void append_utf8(std::string& to, std::uint32_t code) {
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes after the first
    const std::uint32_t marks[] = {0, 0xC0, 0xE0, 0xF0};
    to += static_cast<char>(marks[more] | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) to += static_cast<char>(0x80u | (code >> (6 * i) & 0x3Fu));
  }

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

/// The text in quotes, with the escapes that JSON needs and no others.
SINTER_SHARED_COLD std::string json_string(std::string_view text);

#if SINTER_DEFINES

SINTER_SHARED_COLD std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    constexpr std::string_view meanings = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    if (const std::size_t i = meanings.find(c); i != std::string_view::npos) {
      quoted += {'\\', letters[i]};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      const char* const digits = "0123456789abcdef";
      quoted += "\\u00";
      quoted += {digits[c >> 4], digits[c & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
