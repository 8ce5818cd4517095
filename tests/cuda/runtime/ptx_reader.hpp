// tests/cuda/runtime/ptx_reader.hpp: PTX from its text.
#pragma once

#include <map>
#include <memory>

#include "ptx_instructions.hpp"

namespace ptx {

struct token {
  std::string text;
  int line;
};

inline std::vector<token> words_of(const std::string& text) {
  std::vector<token> words;
  int line = 1;
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
    } else if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"') {
      const std::size_t end = text.find('"', at + 1);
      words.push_back({text.substr(at, end - at + 1), line});
      at = end + 1;
    } else if (is_name(c) ||
               (c == '-' && at + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0)) {
      std::size_t end = at + 1;
      while (end < text.size() && is_name(text[end])) ++end;
      words.push_back({text.substr(at, end - at), line});
      at = end;
    } else {
      words.push_back({std::string(1, c), line});
      ++at;
    }
  }
  return words;
}

inline std::vector<std::string> parts_of(const std::string& opcode) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t dot; (dot = opcode.find('.', from)) != std::string::npos; from = dot + 1)
    parts.push_back(opcode.substr(from, dot - from));
  parts.push_back(opcode.substr(from));
  return parts;
}

inline bool is_number(const std::string& w) {
  return std::isdigit(static_cast<unsigned char>(w[0])) != 0 || (w[0] == '-' && w.size() > 1);
}
inline word number_of(const std::string& w) {
  if (w.size() > 2 && w[0] == '0' && (w[1] == 'f' || w[1] == 'F' || w[1] == 'd' || w[1] == 'D'))
    return std::stoull(w.substr(2), nullptr, 16);
  if (w[0] == '-') return word{0} - std::stoull(w.substr(1), nullptr, 0);
  return std::stoull(w, nullptr, 0);  // also 12U
}

inline std::size_t size_of(const std::string& type) {
  if (type == "pred") return 1;
  const std::size_t digits = type.find_first_of("0123456789");
  if (digits == std::string::npos) refuse("no type: " + type);
  return static_cast<std::size_t>(std::stoi(type.substr(digits))) / 8;
}

struct module::contents {
  std::map<std::string, function> functions;
  std::map<std::string, std::vector<char>> variables;
  std::map<std::string, word> shared;  ///< variables of a block, by offset
  std::size_t shared_bytes = 0;        ///< that all functions declare; behind it lies what a launch asks for
  std::vector<std::unique_ptr<std::string>> texts;
};

class reader {
 public:
  reader(module::contents& to, const std::string& text);

 private:
  module::contents& in_;
  std::vector<token> words_;
  std::size_t at_ = 0;

  // Of the function that is being read.
  function* f_ = nullptr;
  struct scope {
    std::map<std::string, operand> names;
    std::map<std::string, int> ranges;  ///< %r<9>: the first of its registers
    std::map<std::string, std::size_t> bytes;
  };
  std::vector<scope> scopes_;
  std::map<std::string, std::size_t> labels_;
  std::map<std::string, std::vector<std::string>> tables_;
  std::vector<std::tuple<std::size_t, std::string>> branches_;
  std::vector<std::tuple<std::size_t, std::string>> indexed_;

  const std::string& peek(std::size_t ahead = 0) const {
    static const std::string nothing_left;
    return at_ + ahead < words_.size() ? words_[at_ + ahead].text : nothing_left;
  }
  std::string next() {
    if (at_ >= words_.size()) refuse("the text ends early");
    return words_[at_++].text;
  }
  [[noreturn]] void complain(const std::string& what) const {
    refuse("line " + std::to_string(words_[std::min(at_, words_.size() - 1)].line) + ": " + what);
  }
  void expect(const char* w) {
    if (const std::string found = next(); found != w) complain("'" + found + "' where '" + w + "' was expected");
  }
  bool skip(const char* w) {
    if (peek() != w) return false;
    ++at_;
    return true;
  }
  void skip_to(const char* w) {
    while (next() != w) {
    }
  }

  void variable(space where, bool is_extern);
  void read_function(bool is_kernel);
  std::vector<std::pair<std::string, std::size_t>> parameter_list(const char* end);
  std::pair<std::string, std::size_t> declaration();
  void body();
  void statement();
  void declare_registers();
  void instruction_line();
  void read_call(instruction& i);
  operand name(const std::string& w);
  operand simple();
  int vector(operand* to);
  word call_offset(const std::string& w, std::size_t& bytes);
  action known(const std::vector<std::string>& p, instruction& i);
  action arithmetic(const std::vector<std::string>& p);
};

inline reader::reader(module::contents& to, const std::string& text) : in_(to), words_(words_of(text)) {
  for (const bool is_extern : {false, true})  // which functions declare too, and read before it is declared
    for (std::size_t k = 1; k < words_.size(); ++k)
      if (words_[k].text == ".shared" && (words_[k - 1].text == ".extern") == is_extern) {
        at_ = k + 1;
        variable(space::shared, is_extern);
      }
  at_ = 0;
  while (at_ < words_.size()) {
    const std::string w = next();
    if (w == ".version" || w == ".target" || w == ".address_size") {
      ++at_;
      while (skip(",")) ++at_;
    } else if (w == ".visible" || w == ".weak" || w == ".extern" || w == ".common") {
      continue;
    } else if (w == ".global" || w == ".const") {
      variable(space::global, false);
    } else if (w == ".shared") {
      skip_to(";");
    } else if (w == ".entry" || w == ".func") {
      read_function(w == ".entry");
    } else {
      complain("what is '" + w + "'?");
    }
  }
  for (auto& [name, f] : in_.functions)
    for (call_site& c : f.calls) {
      const auto found = in_.functions.find(c.name);
      if (found == in_.functions.end() || !found->second.defined) refuse("there is no function " + c.name);
      c.to = &found->second;
    }
}

/// .align 4 .b8 name[16]: its name and bytes.
inline std::pair<std::string, std::size_t> reader::declaration() {
  std::size_t bytes = 0;
  for (;;) {
    const std::string w = next();
    if (w == ".align") ++at_;
    else if (w == ".ptr" || w == ".global" || w == ".attribute") continue;
    else if (w[0] == '.') bytes = size_of(w.substr(1));
    else {
      while (skip("[")) {
        if (peek() != "]") bytes *= number_of(next());
        else bytes = 0;
        expect("]");
      }
      return {w, bytes};
    }
  }
}

inline void reader::variable(space where, bool is_extern) {
  const std::size_t begin = at_;
  std::size_t element = 1;
  for (std::size_t k = begin; words_[k].text[0] == '.' || is_number(words_[k].text); ++k)
    if (words_[k].text[0] == '.' && words_[k].text != ".align" && words_[k].text != ".attribute")
      element = size_of(words_[k].text.substr(1));
  const auto [name, bytes] = declaration();
  if (where == space::shared) {
    in_.shared[name] = in_.shared_bytes;
    if (!is_extern) in_.shared_bytes = (in_.shared_bytes + bytes + 15) / 16 * 16;
  } else {
    std::vector<char> values(std::max<std::size_t>(bytes, element));
    if (skip("=")) {
      std::size_t to = 0;
      const auto put = [&] {
        const word x = number_of(next());
        std::memcpy(values.data() + to, &x, element);
        to += element;
      };
      if (skip("{")) {
        do put();
        while (skip(","));
        expect("}");
      } else {
        put();
      }
    }
    in_.variables[name] = std::move(values);
  }
  expect(";");
}

inline std::vector<std::pair<std::string, std::size_t>> reader::parameter_list(const char* end) {
  std::vector<std::pair<std::string, std::size_t>> list;
  while (!skip(end)) {
    expect(".param");
    list.push_back(declaration());
    skip(",");
  }
  return list;
}

inline void reader::read_function(bool is_kernel) {
  std::vector<std::pair<std::string, std::size_t>> results, parameters;
  if (skip("(")) results = parameter_list(")");
  const std::string called = next();
  if (skip("(")) parameters = parameter_list(")");
  while (peek()[0] == '.') {  // .maxntid 256, 1, 1
    ++at_;
    while (is_number(peek()) || peek() == ",") ++at_;
  }
  if (skip(";")) return;  // declared only
  function& f = in_.functions[called];
  f = {};
  f.name = called;
  f.is_kernel = is_kernel;
  f.defined = true;
  f_ = &f;
  scopes_.assign(1, {});
  labels_.clear();
  tables_.clear();
  branches_.clear();
  indexed_.clear();
  const auto place = [&](const auto& list, std::vector<parameter>& to, std::size_t& end_of) {
    for (const auto& [n, bytes] : list) {
      const std::size_t align =
          is_kernel ? std::min<std::size_t>(16, std::max<std::size_t>(1, bytes & (~bytes + 1))) : 16;
      end_of = (end_of + align - 1) / align * align;
      to.push_back({end_of, bytes});
      scopes_[0].names[n] = {is_kernel ? operand::parameter : operand::call_parameter, 0, end_of};
      scopes_[0].bytes[n] = bytes;
      end_of += bytes;
    }
  };
  place(results, f.results, f.call_bytes);
  place(parameters, f.parameters, is_kernel ? f.kernel_bytes : f.call_bytes);
  expect("{");
  body();
  for (const auto& [where, label] : branches_) {
    if (!labels_.contains(label)) refuse(called + ": no label " + label);
    f.code[where].target = labels_[label];
  }
  for (const auto& [where, table] : indexed_)
    for (const std::string& label : tables_[table]) f.code[where].targets.push_back(labels_.at(label));
  instruction last;  // where the compiler believes that nobody comes
  last.run = &fall_off;
  last.text = in_.texts.emplace_back(std::make_unique<std::string>("the end")).get();
  f.code.push_back(last);
}

inline void reader::body() {
  while (!skip("}")) statement();
}

inline void reader::declare_registers() {
  const bool is_range_type = next()[0] == '.';
  if (!is_range_type) complain("registers of no type");
  do {
    const std::string n = next();
    if (skip("<")) {
      const int count = static_cast<int>(number_of(next()));
      expect(">");
      scopes_.back().ranges[n] = f_->registers;
      f_->registers += count;
    } else {
      scopes_.back().names[n] = {operand::reg, f_->registers++, 0};
    }
  } while (skip(","));
  expect(";");
}

inline void reader::statement() {
  if (skip("{")) {
    scopes_.emplace_back();
    body();
    scopes_.pop_back();
    return;
  }
  if (skip(".reg")) return declare_registers();
  if (skip(".param") || (peek() == ".local" && (++at_, true))) {
    const bool is_local = words_[at_ - 1].text == ".local";
    std::size_t& end_of = is_local ? f_->local_bytes : f_->call_bytes;
    end_of = (end_of + 15) / 16 * 16;
    const auto [n, bytes] = declaration();
    scopes_.back().names[n] = {is_local ? operand::local : operand::call_parameter, 0, end_of};
    scopes_.back().bytes[n] = bytes;
    end_of += bytes;
    expect(";");
    return;
  }
  if (skip(".shared")) return skip_to(";");
  if (peek() == ".pragma" || peek() == ".loc" || peek() == ".file") {
    if (next() == ".pragma") return skip_to(";");
    while (is_number(peek()) || peek()[0] == '"') ++at_;
    return;
  }
  if (peek(1) == ":") {
    const std::string label = next();
    ++at_;
    if (skip(".branchtargets")) {
      do tables_[label].push_back(next());
      while (skip(","));
      expect(";");
    } else {
      labels_[label] = f_->code.size();
    }
    return;
  }
  instruction_line();
}

inline operand reader::name(const std::string& w) {
  if (w == "_") return {};
  if (w == "WARP_SZ") return {operand::value, 0, 32};
  if (is_number(w)) return {operand::value, 0, number_of(w)};
  for (auto s = scopes_.rbegin(); s != scopes_.rend(); ++s) {
    if (const auto found = s->names.find(w); found != s->names.end()) return found->second;
    const std::size_t digits = w.find_last_not_of("0123456789") + 1;
    if (digits < w.size())
      if (const auto found = s->ranges.find(w.substr(0, digits)); found != s->ranges.end())
        return {operand::reg, found->second + std::stoi(w.substr(digits)), 0};
  }
  if (const auto v = in_.variables.find(w); v != in_.variables.end())
    return {operand::value, 0, reinterpret_cast<word>(v->second.data())};
  if (const auto s = in_.shared.find(w); s != in_.shared.end()) return {operand::value, 0, s->second};
  complain("nothing is called " + w);
}

inline operand reader::simple() {
  if (skip("!")) complain("a negated operand");
  return name(next());
}

inline int reader::vector(operand* to) {
  if (!skip("{")) {
    to[0] = simple();
    return 1;
  }
  int n = 0;
  do {
    if (n == 4) complain("more than four elements");
    to[n++] = simple();
  } while (skip(","));
  expect("}");
  return n;
}

inline word reader::call_offset(const std::string& w, std::size_t& bytes) {
  for (auto s = scopes_.rbegin(); s != scopes_.rend(); ++s)
    if (const auto found = s->names.find(w); found != s->names.end() && found->second.kind == operand::call_parameter) {
      bytes = s->bytes.at(w);
      return found->second.bits;
    }
  complain(w + " is no parameter of a call");
}

inline void reader::read_call(instruction& i) {
  call_site c;
  const auto list = [&](auto& to) {
    while (!skip(")")) {
      std::size_t bytes = 0;
      const word offset = call_offset(next(), bytes);
      to.emplace_back(offset, bytes);
      skip(",");
    }
  };
  if (skip("(")) {
    list(c.results);
    expect(",");
  }
  c.name = next();
  if (c.name[0] == '%') complain("a call through a pointer");
  if (skip(",") && skip("(")) list(c.arguments);
  while (peek() != ";") ++at_;
  i.call = static_cast<int>(f_->calls.size());
  i.run = &enter;
  f_->calls.push_back(std::move(c));
}

inline void reader::instruction_line() {
  instruction i;
  const std::size_t begin = at_;
  if (skip("@")) {
    i.guard_is_false = skip("!");
    i.guard = simple().number;
  }
  const std::string opcode = next();
  const std::vector<std::string> p = parts_of(opcode);
  if (p[0] == "call") {
    read_call(i);
  } else if (p[0] == "bra") {
    branches_.emplace_back(f_->code.size(), next());
    i.run = &branch;
  } else if (p[0] == "brx") {
    i.from[0] = simple();
    expect(",");
    indexed_.emplace_back(f_->code.size(), next());
    i.run = &branch_by_index;
  } else {
    i.run = known(p, i);
    if (i.run == nullptr) complain("'" + opcode + "' is not known here");
  }
  std::string text;
  for (std::size_t k = begin; k < at_; ++k) text += (k > begin && words_[k].text != "," ? " " : "") + words_[k].text;
  i.text = in_.texts.emplace_back(std::make_unique<std::string>(std::move(text))).get();
  expect(";");
  f_->code.push_back(std::move(i));
}

inline bool has(const std::vector<std::string>& p, const char* w) {
  return std::find(p.begin(), p.end(), w) != p.end();
}

inline space space_in(const std::vector<std::string>& p) {
  if (has(p, "global") || has(p, "const")) return space::global;
  if (has(p, "shared")) return space::shared;
  if (has(p, "local")) return space::local;
  if (has(p, "param")) return space::param;
  return space::generic;
}

/// The arithmetic of those operands, with what the opcode says of rounding, denormal numbers and saturation.
template <class T, class F, template <class, class> class Arity>
action modified(const std::vector<std::string>& p) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool turned = has(p, "rm") || has(p, "rp") || has(p, "rz");
    if (turned && (has(p, "ftz") || (has(p, "sat") && !has(p, "rm")))) return nullptr;
    if (has(p, "sat")) {
      if (has(p, "rm")) return Arity<T, saturated<rounded<FE_DOWNWARD, F>>>::make();
      return has(p, "ftz") ? Arity<T, flushed<saturated<F>>>::make() : Arity<T, saturated<F>>::make();
    }
    if (has(p, "rm")) return Arity<T, rounded<FE_DOWNWARD, F>>::make();
    if (has(p, "rp")) return Arity<T, rounded<FE_UPWARD, F>>::make();
    if (has(p, "rz")) return Arity<T, rounded<FE_TOWARDZERO, F>>::make();
    if (has(p, "ftz")) return Arity<T, flushed<F>>::make();
  }
  return Arity<T, F>::make();
}
template <class T, class F>
struct of_1 {
  static action make() { return unary<T>(canonical<F>()); }
};
template <class T, class F>
struct of_2 {
  static action make() { return binary<T>(canonical<F>()); }
};
template <class T, class F>
struct of_3 {
  static action make() { return ternary<T>(canonical<F>()); }
};

inline action reader::arithmetic(const std::vector<std::string>& p) {
  const std::string &op = p[0], &type = p.back();
  action a = nullptr;
  const bool is_float = type == "f32" || type == "f64";
  if (has(p, "sat") && !is_float) return nullptr;
  const auto on_both = [&](auto f) {
    with_integer(type, [&]<class T>(T) { a = binary<T>(f); });
    with_floating(type, [&]<class T>(T) { a = modified<T, decltype(f), of_2>(p); });
  };
  const auto on_floats = [&](auto f) {
    with_floating(type, [&]<class T>(T) { a = modified<T, decltype(f), of_1>(p); });
  };
  if (op == "addc" || op == "subc" || op == "madc" || has(p, "cc")) {
    const auto make = [&]<class T, class Product, bool Adds>() {
      const bool writes = has(p, "cc");
      return op.size() == 3 ? action(&add_with_carry<T, Product, Adds, false, true>)
             : writes       ? action(&add_with_carry<T, Product, Adds, true, true>)
                            : action(&add_with_carry<T, Product, Adds, true, false>);
    };
    with_integer(type, [&]<class U>(U) {
      using T = std::make_unsigned_t<U>;  // but for the high part of a product the same
      if (op[0] == 'a') a = make.template operator()<T, void, true>();
      else if (op[0] == 's') a = make.template operator()<T, void, false>();
      else if (has(p, "lo")) a = make.template operator()<T, times, true>();
      else if (has(p, "hi") && std::is_unsigned_v<U>) a = make.template operator()<T, times_high, true>();
    });
  } else if (op == "add") on_both(plus());
  else if (op == "sub") on_both(minus());
  else if (op == "mul" && is_float) on_both(times());
  else if (op == "mul" && has(p, "lo")) with_integer(type, [&]<class T>(T) { a = binary<T>(times()); });
  else if (op == "mul" && has(p, "hi")) with_integer(type, [&]<class T>(T) { a = binary<T>(times_high()); });
  else if ((op == "mul" || op == "mad") && has(p, "wide")) {
    const bool adds = op == "mad";
    if (type == "u16")
      a = adds ? &times_wide_plus<std::uint16_t, std::uint32_t> : &times_wide<std::uint16_t, std::uint32_t>;
    if (type == "s16")
      a = adds ? &times_wide_plus<std::int16_t, std::int32_t> : &times_wide<std::int16_t, std::int32_t>;
    if (type == "u32")
      a = adds ? &times_wide_plus<std::uint32_t, std::uint64_t> : &times_wide<std::uint32_t, std::uint64_t>;
    if (type == "s32")
      a = adds ? &times_wide_plus<std::int32_t, std::int64_t> : &times_wide<std::int32_t, std::int64_t>;
  } else if (op == "mad" && has(p, "lo")) with_integer(type, [&]<class T>(T) { a = &times_plus<T, times>; });
  else if (op == "mad" && has(p, "hi")) with_integer(type, [&]<class T>(T) { a = &times_plus<T, times_high>; });
  else if (op == "fma" || (op == "mad" && is_float))
    with_floating(type, [&]<class T>(T) { a = modified<T, fused, of_3>(p); });
  else if (op == "div") on_both(over());
  else if (op == "rem") with_integer(type, [&]<class T>(T) { a = binary<T>(rest()); });
  else if ((op == "min" || op == "max") && has(p, "NaN"))
    with_floating(type, [&]<class T>(T) {
      a = op == "min" ? modified<T, keeping_nan<least>, of_2>(p) : modified<T, keeping_nan<most>, of_2>(p);
    });
  else if (op == "min") on_both(least());
  else if (op == "max") on_both(most());
  else if (op == "abs" || op == "neg") {
    with_integer(type, [&]<class T>(T) { a = op == "abs" ? unary<T>(magnitude()) : unary<T>(negated()); });
    with_floating(
        type, [&]<class T>(T) { a = op == "abs" ? modified<T, magnitude, of_1>(p) : modified<T, negated, of_1>(p); });
  } else if (op == "copysign") with_floating(type, [&]<class T>(T) { a = binary<T>(with_sign_of()); });
  else if (op == "sqrt") on_floats(root());
  else if (op == "rcp") on_floats(reciprocal());
  else if (op == "rsqrt") on_floats(reciprocal_root());
  else if (op == "ex2") on_floats(power_of_2());
  else if (op == "lg2") on_floats(log_to_2());
  else if (op == "sin") on_floats(sine());
  else if (op == "cos") on_floats(cosine());
  else if (op == "tanh") on_floats(hyperbolic_tangent());
  else if (op == "and" || op == "or" || op == "xor" || op == "not") {
    if (type == "pred")
      a = op == "and"   ? binary<bool>(both())
          : op == "or"  ? binary<bool>(either())
          : op == "xor" ? binary<bool>(differing())
                        : unary<bool>(inverted());
    else
      with_integer(type, [&]<class T>(T) {
        a = op == "and"   ? binary<T>(both())
            : op == "or"  ? binary<T>(either())
            : op == "xor" ? binary<T>(differing())
                          : unary<T>(inverted());
      });
  } else if (op == "clz")
    a = type == "b64" ? action([](machine& m, const instruction& i) {
      m.set<std::uint32_t>(i.to[0], static_cast<std::uint32_t>(std::countl_zero(m.get<word>(i.from[0]))));
    })
                      : unary<std::uint32_t>(leading_zeros());
  else if (op == "popc")
    a = type == "b64" ? action([](machine& m, const instruction& i) {
      m.set<std::uint32_t>(i.to[0], static_cast<std::uint32_t>(std::popcount(m.get<word>(i.from[0]))));
    })
                      : unary<std::uint32_t>(ones());
  else if (op == "brev") a = type == "b64" ? unary<std::uint64_t>(reversed()) : unary<std::uint32_t>(reversed());
  else if (op == "shl") with_integer(type, [&]<class T>(T) { a = &shift_left<T>; });
  else if (op == "shr") with_integer(type, [&]<class T>(T) { a = &shift_right<T>; });
  else if (op == "shf")
    a = has(p, "l")      ? (has(p, "wrap") ? &funnel<true, true> : &funnel<true, false>)
        : has(p, "wrap") ? &funnel<false, true>
                         : &funnel<false, false>;
  else if (op == "bfe") with_integer(type, [&]<class T>(T) { a = &extract_bits<T>; });
  else if (op == "bfi") a = type == "b64" ? &insert_bits<std::uint64_t> : &insert_bits<std::uint32_t>;
  else if (op == "prmt") a = p.size() == 2 ? &permute_bytes : nullptr;
  else if (op == "lop3") a = &logic_of_3;
  else if (op == "selp") with_any(type, [&]<class T>(T) { a = &select<T>; });
  return a;
}

inline action reader::known(const std::vector<std::string>& p, instruction& i) {
  const std::string &op = p[0], &type = p.back();
  action a = nullptr;
  const auto address = [&](operand& base) {
    expect("[");
    base = simple();
    if (skip("+")) i.offset = number_of(next());
    expect("]");
  };
  const auto more = [&](operand* to, int first, int most_of) {
    int n = first;
    while (skip(",")) {
      if (n == most_of) complain("too many operands");
      to[n++] = simple();
    }
    return n;
  };
  if (op == "ret") return f_->is_kernel ? &end : &leave;
  if (op == "exit") return &end;
  if (op == "trap") return &trap;
  if (op == "membar" || op == "fence") return &nothing;
  if (op == "nanosleep") {
    i.from[0] = simple();
    return &sleep;
  }
  if (op == "bar" && has(p, "warp")) {
    i.from[3] = simple();
    i.together = &meet;
    return &wait;
  }
  if (op == "bar" && has(p, "red") && has(p, "or")) {
    i.to[0] = simple();
    expect(",");
    if (next() != "0") complain("a barrier other than for all threads");
    expect(",");
    i.from[0] = simple();
    i.at_barrier = &any_of_block;
    return &wait;
  }
  if (op == "bar" || op == "barrier") {
    if (!is_number(peek()) || number_of(next()) != 0 || peek() != ";") complain("a barrier other than for all threads");
    return &wait;
  }
  if (op == "cp") {
    if (has(p, "wait_all")) return &finish_copies;
    address(i.to[0]);
    expect(",");
    expect("[");
    i.from[0] = simple();
    expect("]");
    expect(",");
    i.from[1] = simple();
    return &copy_later;
  }
  if (op == "ld" || op == "ldu") {
    i.count = vector(i.to);
    expect(",");
    address(i.from[0]);
    with_any(type, [&]<class T>(T) {
      a = by_space(space_in(p), [](auto s) -> action { return &load<decltype(s)::value, T>; });
    });
    return a;
  }
  if (op == "st") {
    address(i.to[0]);
    expect(",");
    i.count = vector(i.from);
    with_any(type, [&]<class T>(T) {
      a = by_space(space_in(p), [](auto s) -> action { return &store<decltype(s)::value, T>; });
    });
    return a;
  }
  if (op == "atom" || op == "red") {
    if (op == "atom") {
      i.to[0] = simple();
      expect(",");
    }
    address(i.from[0]);
    more(i.from, 1, 4);
    const auto of = [&](auto f) {
      const auto make = [&]<class T>(T) {
        a = by_space(space_in(p), [](auto s) -> action { return &atomic<decltype(s)::value, T, decltype(f)>; });
      };
      with_integer(type, make) || with_floating(type, make);
    };
    if (has(p, "add")) of(plus());
    else if (has(p, "exch")) of(second());
    else if (has(p, "min")) of(least());
    else if (has(p, "max")) of(most());
    else if (has(p, "cas"))
      with_integer(type, [&]<class T>(T) {
        a = by_space(space_in(p), [](auto s) -> action { return &compare_and_swap<decltype(s)::value, T>; });
      });
    return a;
  }
  if (op == "mov") {
    const bool parts = peek() == "{";
    const int to = vector(i.to);
    expect(",");
    const std::string& w = peek();
    if (w[0] == '%' && (w.compare(0, 4, "%tid") == 0 || w.compare(0, 4, "%cta") == 0 || w.compare(0, 5, "%ntid") == 0 ||
                        w.compare(0, 5, "%ncta") == 0 || w.compare(0, 5, "%lane") == 0)) {
      const std::string which = next();
      if (which == "%tid.x") return &special<[](const machine& m) -> word { return m.t->number; }>;
      if (which == "%ctaid.x") return &special<[](const machine& m) -> word { return m.block; }>;
      if (which == "%ntid.x") return &special<[](const machine& m) -> word { return m.threads; }>;
      if (which == "%nctaid.x") return &special<[](const machine& m) -> word { return m.blocks; }>;
      if (which == "%tid.y" || which == "%tid.z" || which == "%ctaid.y" || which == "%ctaid.z")
        return &special<[](const machine&) -> word { return 0; }>;
      if (which == "%ntid.y" || which == "%ntid.z" || which == "%nctaid.y" || which == "%nctaid.z")
        return &special<[](const machine&) -> word { return 1; }>;
      if (which == "%lanemask_le")
        return &special<[](const machine& m) -> word { return (word{2} << m.t->number % 32) - 1; }>;
      if (which == "%lanemask_lt")
        return &special<[](const machine& m) -> word { return (word{1} << m.t->number % 32) - 1; }>;
      if (which == "%lanemask_ge")
        return &special<[](const machine& m) -> word { return ~word{0} << m.t->number % 32; }>;
      if (which == "%laneid") return &special<[](const machine& m) -> word { return m.t->number % 32; }>;
      return nullptr;
    }
    const bool joins = w == "{";
    i.count = vector(i.from);
    const std::size_t bytes = size_of(type) / static_cast<std::size_t>(std::max(to, i.count));
    if (bytes > 4 && (parts || joins)) return nullptr;
    if (parts) {
      i.count = to;
      return bytes == 1 ? &part<std::uint8_t> : bytes == 2 ? &part<std::uint16_t> : &part<std::uint32_t>;
    }
    if (joins) return bytes == 1 ? &join<std::uint8_t> : bytes == 2 ? &join<std::uint16_t> : &join<std::uint32_t>;
    if (type == "pred")
      return [](machine& m, const instruction& j) { m.set<std::uint8_t>(j.to[0], m.bits(j.from[0]) & 1); };
    with_any(type,
             [&]<class T>(T) { a = [](machine& m, const instruction& j) { m.set<T>(j.to[0], m.get<T>(j.from[0])); }; });
    return a;
  }
  i.to[0] = simple();
  if ((op == "setp" || op == "shfl") && skip("|")) i.to[1] = simple();
  int n = 0;
  while (skip(",")) {
    if (n == 4) complain("too many operands");
    i.from[n++] = simple();
  }
  if (op == "vote" && has(p, "sync") && n == 2) {
    i.from[3] = i.from[1];
    i.together = has(p, "ballot") ? &count_votes<vote::ballot>
                 : has(p, "any")  ? &count_votes<vote::any>
                 : has(p, "all")  ? &count_votes<vote::all>
                                  : nullptr;
    return i.together != nullptr ? &wait : nullptr;
  }
  if (op == "shfl" && has(p, "sync") && n == 4) {
    i.together = has(p, "idx")    ? &exchange<shuffle::idx>
                 : has(p, "up")   ? &exchange<shuffle::up>
                 : has(p, "down") ? &exchange<shuffle::down>
                                  : &exchange<shuffle::bfly>;
    return &wait;
  }
  if (op == "cvta") {
    const bool to = has(p, "to");
    const space s = space_in(p);
    if (s == space::shared) return to ? &change_window<shared_window, 0> : &change_window<0, shared_window>;
    if (s == space::local) return to ? &change_window<local_window, 0> : &change_window<0, local_window>;
    if (s == space::param) return to ? &change_window<parameter_window, 0> : &change_window<0, parameter_window>;
    return &change_window<0, 0>;
  }
  if (op == "testp") {
    i.offset = p[1] == "finite" ? 0 : p[1] == "infinite" ? 1 : 2;
    if (p[1] != "finite" && p[1] != "infinite" && p[1] != "notanumber") return nullptr;
    with_floating(type, [&]<class T>(T) { a = &is_of_kind<T>; });
    return a;
  }
  if (op == "setp") {
    static const std::map<std::string, int> names = {
        {"eq", 0}, {"ne", 1},  {"lt", 2},  {"le", 3},  {"gt", 4},  {"ge", 5},   {"lo", 2},   {"ls", 3},   {"hi", 4},
        {"hs", 5}, {"equ", 6}, {"neu", 7}, {"ltu", 8}, {"leu", 9}, {"gtu", 10}, {"geu", 11}, {"num", 12}, {"nan", 13}};
    const auto which = names.find(p[1]);
    if (which == names.end() || has(p, "ftz")) return nullptr;
    const auto make = [&]<class T>(T) {
      a = has(p, "and")   ? predicate_action<1, T>(which->second)
          : has(p, "or")  ? predicate_action<2, T>(which->second)
          : has(p, "xor") ? predicate_action<3, T>(which->second)
                          : predicate_action<0, T>(which->second);
    };
    with_integer(type, make) || with_floating(type, make);
    return a;
  }
  if (op == "cvt") {
    if (p.size() < 3) return nullptr;
    const std::string& to = p[p.size() - 2];
    if (has(p, "sat") && to != "f32" && to != "f64") return nullptr;
    const bool narrow = to == "f16" || to == "bf16";  // only rounded to the nearest here, and from float to bfloat16
    if (narrow && (!has(p, "rn") || (to == "bf16" && type != "f32"))) return nullptr;
    if (has(p, "ftz") || has(p, "relu")) return nullptr;
    with_any(to, [&]<class To>(To) {
      with_any(type, [&]<class From>(From) {
        const auto make = [&]<rounding R>() {
          return has(p, "sat") ? action(&convert<To, From, R, true>) : action(&convert<To, From, R, false>);
        };
        a = has(p, "rni")   ? make.template operator()<rounding::integer_nearest>()
            : has(p, "rzi") ? make.template operator()<rounding::integer_zero>()
            : has(p, "rmi") ? make.template operator()<rounding::integer_down>()
            : has(p, "rpi") ? make.template operator()<rounding::integer_up>()
            : has(p, "rz")  ? make.template operator()<rounding::zero>()
            : has(p, "rm")  ? make.template operator()<rounding::down>()
            : has(p, "rp")  ? make.template operator()<rounding::up>()
                            : make.template operator()<rounding::nearest>();
      });
    });
    return a;
  }
  return arithmetic(p);
}

}  // namespace ptx
