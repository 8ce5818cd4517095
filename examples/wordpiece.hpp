// Divides texts into pieces of words that a network has numbers for, as BERT's "uncased" tokenizer does.
#pragma once

#include <sinter/sinter.hpp>
#if __has_include(<sinter/io.hpp>)  // part of the single header, with SINTER_WITH_DATA
#include <sinter/io.hpp>
#endif

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "unicode.hpp"

/// WordPiece: letters become lower case and lose their accents, words end at blanks, and each punctuation mark and each
/// Chinese character is a word. The longest known beginning of a word is its first piece, and so on; pieces inside a
/// word are listed with ## in front. Words with a part that is not listed, and those of more than 100 characters, are
/// [UNK]. Letters of Latin, Greek, Cyrillic, Armenian, Arabic, Hangul and kana are made plain, others stay as they are;
/// marks, punctuation and blanks are known up to U+FFFF. Names such as "[SEP]" in a text are text. Bytes that are no
/// UTF-8 are passed over. Y. Wu et al., "Google's neural machine translation system" (2016).
///
///     wordpiece pieces("vocab.txt");
///     std::vector<std::int64_t> ids = pieces.ids_of("A cat sleeps.", 128);  // [CLS] a cat sleep ##s . [SEP]
class wordpiece {
 public:
  /// Reads a list of pieces: vocab.txt, with one a line, or tokenizer.json of the library tokenizers. Errors: io_error.
  explicit wordpiece(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
      throw sinter::io_error(path +
                             ": cannot be read; give the vocab.txt or tokenizer.json that belongs to the weights");
    const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (all.starts_with("{")) read_json(all, path);
    else read_lines(all);
    for (const auto& [name, id] :
         {std::pair{"[UNK]", &unknown_}, {"[CLS]", &begin_}, {"[SEP]", &end_}, {"[PAD]", &pad_}}) {
      const auto found = ids_.find(name);
      if (found == ids_.end())
        throw sinter::io_error(
            path + ": lists no piece " + name +
            "; give the vocab.txt or tokenizer.json of a BERT, with one piece a line or in model.vocab");
      *id = found->second;
    }
  }

  /// The numbers of [CLS], the pieces of the text and [SEP], of which the text's last are left out where there would be
  /// more than `most`.
  std::vector<std::int64_t> ids_of(std::string_view text, sinter::index_t most) const {
    std::vector<std::int64_t> ids{begin_};
    for (const std::u32string& word : words_of(text)) {
      if (static_cast<sinter::index_t>(ids.size()) >= most - 1) break;
      add_pieces(word, ids);
    }
    ids.resize(std::min(ids.size(), static_cast<std::size_t>(std::max<sinter::index_t>(most, 2) - 1)));
    ids.push_back(end_);
    return ids;
  }
  /// The number that fills up shorter texts.
  std::int64_t padding() const { return pad_; }
  /// One more than the greatest number of a piece.
  std::int64_t size() const { return size_; }

 private:
  void read_lines(const std::string& all) {
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = std::min(all.find('\n', at), all.size());
      std::string piece = all.substr(at, end - at);
      if (piece.ends_with('\r')) piece.pop_back();
      add(piece, size_);
      at = end + 1;
    }
  }
  void read_json(const std::string& all, const std::string& path) {
    sinter::detail::json_reader json(all, path);
    json.object([&](const std::string& member) {
      if (member != "model") return json.skip();
      json.object([&](const std::string& of_model) {
        if (of_model == "type") {
          if (const std::string type = json.string(); type != "WordPiece")
            json.fail({"a tokenizer of type ", type, ", not WordPiece"});
        } else if (of_model == "vocab") {
          json.object([&](const std::string& piece) { add(piece, json.natural()); });
        } else {
          json.skip();
        }
      });
    });
    json.finish();
  }
  void add(const std::string& piece, std::int64_t id) {
    ids_[piece] = id;
    size_ = std::max(size_, id + 1);
    longest_ = std::max(longest_, piece.size());
  }

  /// The characters of a text, and U+FFFD for each byte that is no part of one.
  static std::u32string characters(std::string_view text) {
    std::u32string all;
    while (!text.empty()) {
      const std::size_t n = sinter::detail::utf8_size(text);
      char32_t c = n == 0 ? 0xFFFD : static_cast<unsigned char>(text[0]);
      if (n > 1) c &= 0x7Fu >> n;
      for (std::size_t i = 1; i < n; ++i) c = c << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
      all += c;
      text.remove_prefix(n > 0 ? n : 1);
    }
    return all;
  }
  static void append(std::string& to, char32_t c) {
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // bytes behind the first
    const unsigned marks[] = {0, 0xC0, 0xE0, 0xF0};
    to += static_cast<char>(marks[more] | c >> (6 * more));
    for (int i = more - 1; i >= 0; --i) to += static_cast<char>(0x80u | (c >> (6 * i) & 0x3Fu));
  }

  static bool is_blank(char32_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
  }
  static bool is_dropped(char32_t c) { return c < 0x20 || c == 0x7F || (c >= 0x80 && contains(unicode::dropped, c)); }
  static bool is_chinese(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2CEAF) || (c >= 0x2F800 && c <= 0x2FA1F);
  }
  static bool is_punctuation(char32_t c) {
    if (c >= 0x80) return contains(unicode::punctuation, c);
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  }
  static char32_t plain(char32_t c) {
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    for (const auto& [first, letters] : unicode::plain_letters)
      if (c >= first && c - first < letters.size() && letters[c - first] != u' ') return letters[c - first];
    return c;
  }

  static std::vector<std::u32string> words_of(std::string_view text) {
    std::vector<std::u32string> words;
    bool inside = false;
    for (const char32_t given : characters(text)) {
      if (is_blank(given)) inside = false;
      if (is_blank(given) || is_dropped(given)) continue;
      if (given >= 0xAC00 && given < 0xD7A4) {  // a syllable of Hangul is two or three letters
        const char32_t n = given - 0xAC00;
        if (!std::exchange(inside, true)) words.emplace_back();
        words.back() += {0x1100 + n / 588, 0x1161 + n % 588 / 28};
        if (n % 28 > 0) words.back() += 0x11A7 + n % 28;
        continue;
      }
      const char32_t c = plain(given);
      const bool alone = is_chinese(c) || is_punctuation(c);
      if (alone || !inside) words.emplace_back();
      words.back() += c;
      inside = !alone;
    }
    return words;
  }

  void add_pieces(const std::u32string& word, std::vector<std::int64_t>& ids) const {
    const std::size_t before = ids.size();
    std::string text;
    std::vector<std::size_t> ends;  // of the characters, in bytes
    for (const char32_t c : word) {
      append(text, c);
      ends.push_back(text.size());
    }
    std::size_t begin = 0;
    bool known = word.size() <= 100;
    while (known && begin < text.size()) {
      const std::string prefix = begin > 0 ? "##" : "";
      const auto longest = std::find_if(ends.rbegin(), ends.rend(), [&](std::size_t end) {
        if (end <= begin) return true;
        if (end - begin + prefix.size() > longest_) return false;
        const auto found = ids_.find(prefix + text.substr(begin, end - begin));
        if (found != ids_.end()) ids.push_back(found->second);
        return found != ids_.end();
      });
      known = longest != ends.rend() && *longest > begin;
      if (known) begin = *longest;
    }
    if (known) return;
    ids.resize(before);
    ids.push_back(unknown_);
  }

  std::unordered_map<std::string, std::int64_t> ids_;
  std::int64_t size_ = 0, unknown_ = 0, begin_ = 0, end_ = 0, pad_ = 0;
  std::size_t longest_ = 0;
};
