// tests/judge/cases.cpp: reads cases.idx and cases.dat.
#include "cases.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

namespace judge {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; !text.empty();) {
    const std::size_t to = text.find(separator, from);
    parts.push_back(text.substr(from, to - from));
    if (to == std::string::npos) break;
    from = to + 1;
  }
  return parts;
}

namespace {

/// Whether Python reads the text as an integer.
bool is_integer(const std::string& text) {
  const std::size_t from = text.starts_with('-') ? 1 : 0;
  return text.size() > from && text.find_first_not_of("0123456789", from) == std::string::npos;
}

/// The integers of "(3, 3)" or "[3]" as "3,3" or "3"; anything else inside brackets gives nothing.
std::optional<std::string> integers_between_brackets(const std::string& text) {
  if (text.size() < 2 || !(text.starts_with('(') || text.starts_with('['))) return {};
  std::string list;
  for (std::string part : split(text.substr(1, text.size() - 2), ',')) {
    std::erase(part, ' ');
    if (part.empty()) continue;  // behind the last comma of (3,)
    if (!is_integer(part)) return {};
    list += (list.empty() ? "" : ",") + part;
  }
  return list;
}

/// A value as Python writes it.
argument python_value(const std::string& text) {
  if (text == "None") return {"n", ""};
  if (text == "True" || text == "False") return {"b", text == "True" ? "1" : "0"};
  if (text.size() > 1 && text.front() == '\'') return {"s", text.substr(1, text.size() - 2)};
  if (is_integer(text)) return {"i", text};
  if (const auto list = integers_between_brackets(text)) return {"is", *list};
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return {!text.empty() && *end == '\0' ? "f" : "j", text};
}

void add(test_case& c, const std::string& slot, argument a) {
  if (!c.arguments.emplace(slot, std::move(a)).second)
    throw sinter::value_error("judge: " + c.name + " has two arguments " + slot);
}

/// {"args": ["4"], "kwargs": {"padding": "'same'"}} becomes c0 = 4, padding = same.
void read_constructor(const std::string& json, test_case& c) {
  std::vector<std::string> strings;
  std::size_t args = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '"') continue;
    std::string s;
    for (++i; i < json.size() && json[i] != '"'; ++i) {
      if (json[i] != '\\') s += json[i];
      else if (json[++i] == 'n') s += '\n';
      else s += json[i];
    }
    if (s == "kwargs") args = strings.size();
    strings.push_back(s);
  }
  for (std::size_t i = 1; i < args; ++i) add(c, "c" + std::to_string(i - 1), python_value(strings[i]));
  for (std::size_t i = args + 1; i + 1 < strings.size(); i += 2) add(c, strings[i], python_value(strings[i + 1]));
  add(c, "training", {"b", c.name.ends_with(".eval") ? "0" : "1"});
}

/// A parameter or buffer of a module. An argument of the constructor that is this tensor needs no reading.
void add_member(test_case& c, const std::string& name) {
  const auto same = c.arguments.find(name);
  if (same != c.arguments.end() && same->second.value.starts_with("tensor(")) c.arguments.erase(same);
  add(c, "self." + name, {"T", name});
}

template <class T>
std::vector<double> numbers_of(const array& a) {
  std::vector<double> result(a.bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < result.size(); ++i) {
    T x;
    std::memcpy(&x, a.bytes.data() + i * sizeof(T), sizeof(T));
    result[i] = static_cast<double>(x);
  }
  return result;
}

}  // namespace

std::vector<double> numbers(const array& a) {
  if (a.dtype == "float32") return numbers_of<float>(a);
  if (a.dtype == "float64") return numbers_of<double>(a);
  if (a.dtype == "int8") return numbers_of<std::int8_t>(a);
  if (a.dtype == "int16") return numbers_of<std::int16_t>(a);
  if (a.dtype == "int32") return numbers_of<std::int32_t>(a);
  if (a.dtype == "int64") return numbers_of<std::int64_t>(a);
  if (a.dtype == "uint8" || a.dtype == "bool") return numbers_of<std::uint8_t>(a);
  if (a.dtype == "uint16") return numbers_of<std::uint16_t>(a);
  if (a.dtype == "uint32") return numbers_of<std::uint32_t>(a);
  if (a.dtype == "uint64") return numbers_of<std::uint64_t>(a);
  throw sinter::value_error("judge: arrays of " + a.dtype + " are unknown");
}

std::vector<test_case> read_cases(const std::string& folder) {
  std::ifstream text(folder + "/cases.idx"), data(folder + "/cases.dat", std::ios::binary);
  if (!text || !data) throw sinter::io_error("judge: cannot read cases.idx and cases.dat in " + folder);
  std::vector<test_case> cases;
  for (std::string line; std::getline(text, line);) {
    std::vector<std::string> f = split(line, '\t');
    f.resize(8);
    if (f[0] == "C") {
      cases.emplace_back().name = f[1];
      cases.back().op = f[3];
      continue;
    }
    test_case& c = cases.at(cases.size() - 1);
    if (f[0] == "P" || f[0] == "A") add(c, f[1], {f[2], f[3]});
    if (f[0] == "M") read_constructor(f[2], c);
    if (f[0] == "O") {
      c.onnx = true;
      const auto inputs = split(f[1], ',');
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (!inputs[i].empty()) add(c, std::to_string(i), {"T", inputs[i]});
    }
    if (f[0] == "T") {
      array a{f[1], f[2], f[3], {}, std::vector<char>(std::stoul(f[6]))};
      for (const std::string& extent : split(f[4], ',')) a.extents.push_back(std::stoll(extent));
      data.seekg(std::stoll(f[5]));
      if (!data.read(a.bytes.data(), static_cast<std::streamsize>(a.bytes.size())))
        throw sinter::io_error("judge: cases.dat in " + folder + " is cut short");
      if (a.role == "param" || a.role == "buffer") add_member(c, a.name);
      c.arrays.push_back(std::move(a));
    }
  }
  return cases;
}

}  // namespace judge
