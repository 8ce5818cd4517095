// tests/judge/call.hpp: what a row sees of a case: its arguments as tensors and numbers, and where its results go.
//
// A row that reads an argument says as what: the form is not there for another kind, so that a bool is no integer, a
// mask no list of indices, and None no number. Reading is also the only way to have an argument not counted as unread.
//
// Tensors are shown with the rank the row asks for, 1s in front, so that one instantiation serves all ranks; axes are
// counted accordingly, and shapes of results are compared without the 1s in front. Floats are variables, so that
// gradients come along.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>

#include "cases.hpp"

namespace judge {

/// Thrown where the library has the op, but not with these arguments.
struct form_not_there {
  std::string why;
};

struct result {
  shape extents;
  char kind = 'f';  ///< f, i or b: floating point, integer, bool
  std::vector<double> values;
};

/// A case while a row works on it.
struct run {
  explicit run(const test_case& of) : c(of) {}

  const test_case& c;
  std::set<std::string> read;  ///< slots
  std::vector<result> results;
  struct leaf {
    std::string name;
    std::function<std::vector<double>()> gradient;
  };
  std::vector<leaf> leaves;
  std::map<std::string, result> buffers;  ///< after the call
};

class call {
 public:
  explicit call(run& r) : r_(r) {}

  // Names are those under which a case may have the argument, separated by blanks. None counts as the argument left out
  // where it is among them, as in "2 bias None".

  /// Whether the case has the argument. It is yet to be read.
  bool has(const char* names) const { return look(names).value != nullptr; }
  /// Whether the argument is a number, or a bool, or text, and so on; see `argument` for the kinds.
  bool is(const char* names, const char* kind) const {
    const place p = look(names);
    return p.value && p.value->kind == kind;
  }
  /// Whether the argument is None, as opposed to left out.
  bool is_none(const char* names) const {
    const std::vector<std::string> all = split(names, ' ');
    return std::any_of(all.begin(), all.end(), [&](const std::string& name) {
      const auto at = r_.c.arguments.find(name);
      return at != r_.c.arguments.end() && at->second.kind == "n";
    });
  }
  /// The library has the op without this argument only; PyTorch takes None for that.
  void absent(const char* names) const {
    if (has((std::string(names) + " None").c_str())) throw form_not_there{names};
  }
  /// Arguments that need no reading, as the tensors say the same or no result depends on them.
  void implied(const char* names) const {
    for (const std::string& name : split(names, ' ')) r_.read.insert(name);
  }

  /// An argument that is a tensor, or a number as one.
  array tensor_of(const char* names) const {
    if (const argument* a = read(names)) return tensor_of(*a, names);
    throw form_not_there{"no " + std::string(names)};
  }
  /// The tensors of a list (PyTorch), or all inputs (ONNX).
  std::vector<array> tensors(const char* names = "0 tensors") const {
    std::vector<array> list;
    if (onnx()) {
      for (int i = 0; has(std::to_string(i).c_str()); ++i) list.push_back(tensor_of(std::to_string(i).c_str()));
    } else if (const argument* a = read(names); a && a->kind == "Ts") {
      for (const std::string& name : split(a->value, ',')) list.push_back(tensor_of({"T", name}, names));
    }
    if (list.empty()) throw form_not_there{"no tensors"};
    return list;
  }

  /// A number that is neither a bool nor None.
  double number(const char* names, double otherwise) const {
    const argument* a = read(names);
    return a ? only_one(values(*a, names, "i f", "float int uint"), names) : otherwise;
  }
  index_t integer(const char* names, index_t otherwise) const {
    const argument* a = read(names);
    return a ? static_cast<index_t>(only_one(values(*a, names, "i", "int uint"), names)) : otherwise;
  }
  /// A bool; ONNX writes 0 and 1 in attributes.
  bool flag(const char* names, bool otherwise) const {
    const argument* a = read(names);
    if (!a) return otherwise;
    const double value = only_one(values(*a, names, onnx() ? "i" : "b", "bool"), names);
    if (value != 0 && value != 1) throw form_not_there{std::string(names) + " is no bool"};
    return value == 1;
  }
  /// An attribute as it is written.
  std::string attribute(const char* names) const {
    const argument* a = read(names);
    return a ? a->value : "";
  }
  std::string text(const char* names, const char* otherwise) const { return text_of_kind("s", names, otherwise); }
  /// What is no other kind of argument, as JSON.
  std::string json(const char* names) const { return text_of_kind("j", names, ""); }
  /// The name of an element type.
  std::string dtype(const char* names, const std::string& otherwise) const {
    return text_of_kind("d", names, otherwise);
  }
  /// An integer or a list of them; empty where the case has none.
  shape integers(const char* names) const {
    shape s;
    if (const argument* a = read(names))
      for (double x : values(*a, names, "i is", "int uint")) s.push_back(static_cast<index_t>(x));
    return s;
  }
  /// A number or a list of them; empty where the case has none.
  std::vector<double> reals(const char* names) const {
    const argument* a = read(names);
    return a ? values(*a, names, "i f is fs", "float int uint") : std::vector<double>();
  }
  /// Integers, of which each may be None: that is `none` here.
  shape integers_or_none(const char* names, index_t none) const {
    if (!is(names, "j")) return integers(names);
    shape s;
    const std::string all = read(names)->value;
    for (std::string part : split(all.substr(1, all.size() - 2), ',')) {
      std::erase(part, ' ');
      if (part == "null" || part == "None") s.push_back(none);
      else s.push_back(static_cast<index_t>(number_of(part, names)));
    }
    return s;
  }
  /// The library has the op for one value of this argument only.
  void only(const char* names, double value) const { only(names, value, value); }
  void only(const char* names, double value, double otherwise) const {
    if (number(names, otherwise) != value) throw form_not_there{names};
  }
  void only_flag(const char* names, bool value) const {
    if (flag(names, value) != value) throw form_not_there{names};
  }
  void only_text(const char* names, const char* value) const {
    if (text(names, value) != value) throw form_not_there{names};
  }
  void only_dtype(const char* names, const char* value) const {
    if (dtype(names, value) != value) throw form_not_there{names};
  }

  bool onnx() const { return r_.c.onnx; }
  /// The rank of a tensor, which is yet to be read.
  int rank(const char* names) const {
    const place p = look(names);
    if (!p.value) throw form_not_there{"no " + std::string(names)};
    return static_cast<int>(tensor_of(*p.value, names).extents.size());
  }
  /// Where an axis of the first tensor is once that has rank R.
  index_t shown_axis(index_t axis, int R) const {
    const int rank_of_input = rank("0 input");
    if (axis < -rank_of_input || axis >= rank_of_input) throw form_not_there{"axis of a scalar"};
    return axis < 0 ? axis : axis + R - rank_of_input;
  }
  index_t axis(const char* names, index_t otherwise, int R = 4) const {
    return shown_axis(integer(names, otherwise), R);
  }
  /// An axis that the case has to name.
  index_t axis(const char* names) const {
    if (!has(names)) throw form_not_there{"no " + std::string(names)};
    return axis(names, 0);
  }

  /// The tensor, with elements of type T and rank R.
  template <class T, int R>
  sinter::tensor<T, R> constant(const array& a) const {
    if (a.dtype != dtype_of<T>()) throw form_not_there{"elements of " + a.dtype};
    auto t = sinter::tensor<T, R>::uninitialized(shown<R>(a.extents));
    if (!a.bytes.empty()) std::memcpy(t.data(), a.bytes.data(), a.bytes.size());
    return t;
  }
  template <class T, int R>
  sinter::tensor<T, R> constant(const char* names) const {
    return constant<T, R>(tensor_of(names));
  }
  template <int R>
  static sinter::extents<R> shown(const shape& s) {
    if (s.size() > R) throw form_not_there{"rank " + std::to_string(s.size())};
    sinter::extents<R> e = sinter::detail::ones_extents<R>();
    std::copy(s.begin(), s.end(), e.end() - s.size());
    return e;
  }

  /// A result: a tensor, a variable, an expression, or those that an op gives together.
  template <class E>
  void give(const E& e) const {
    if constexpr (requires { e.indices; }) {
      give(e.values);
      give(e.indices);
    } else if constexpr (requires { e.spread; }) {
      give_together(e.spread, e.mean);
    } else if constexpr (requires { e.max; }) {
      give_together(e.min, e.max);
    } else {
      const auto y = sinter::eval(e);
      const array* seed = result_number("cot");
      if constexpr (requires { y.backward(y.value()); }) {
        record(y.value());
        // A result of another size fails by its shape.
        if (seed && numbers(*seed).size() == r_.results.back().values.size())
          y.backward(seed_of<sinter::element_of<decltype(y)>>(*seed).reshape(y.shape()));
      } else {
        record(y);
      }
    }
  }
  /// Several results of one graph, whose gradients run back together.
  template <class... Y>
  void give_together(const Y&... y) const {
    if constexpr ((requires { y.backward(y.value()); } && ...)) {
      std::vector<sinter::variable<float, 0>> products;
      const auto add = [&](const auto& one) {
        const array* seed = result_number("cot");
        record(one.value());
        if (seed && numbers(*seed).size() == r_.results.back().values.size())
          products.push_back(sum(one * constant<float, 1>(flat(*seed)).reshape(one.shape())));
      };
      (add(y), ...);
      for (std::size_t i = 1; i < products.size(); ++i) products[0] = eval(products[0] + products[i]);
      if (!products.empty()) products[0].backward();
    } else {
      (give(y), ...);
    }
  }
  /// A result that has the shape of an argument, computed in another.
  template <class E>
  void give_like(const char* names, const E& e) const {
    give(e);
    r_.results.back().extents = tensor_of(names).extents;
  }
  /// A result of the case that the library does not have, by design.
  void skip() const { r_.results.push_back({{}, 's', {}}); }
  /// How many results the case has.
  std::size_t results() const {
    return static_cast<std::size_t>(
        std::count_if(r_.c.arrays.begin(), r_.c.arrays.end(), [](const array& a) { return a.role == "out"; }));
  }
  /// Whether the case has a result of this name; ONNX leaves out some.
  bool wants(const char* name) const { return r_.c.find("out", name) != nullptr; }
  /// What a module's buffer holds after the call.
  template <class T, int R>
  void give_buffer(const char* name, const sinter::tensor<T, R>& t) const {
    r_.buffers[name] = result_of(t);
  }

  static array flat(array a) {
    index_t n = 1;
    for (index_t extent : a.extents) n *= extent;
    a.extents = {n};
    return a;
  }

 protected:
  struct place {
    std::string slot;
    const argument* value;  ///< null where there is none, or None that counts as none
  };
  place look(const char* names) const {
    place found{"", nullptr};
    const std::vector<std::string> all = split(names, ' ');
    const bool takes_none = std::find(all.begin(), all.end(), "None") != all.end();
    for (const std::string& name : all) {
      const auto at = r_.c.arguments.find(name);
      if (at == r_.c.arguments.end()) continue;
      if (!found.slot.empty()) throw form_not_there{found.slot + " beside " + name};
      const bool none = at->second.kind == "n";
      if (none && !takes_none) throw form_not_there{name + " is None"};
      if (none) r_.read.insert(name);
      found = {name, none ? nullptr : &at->second};
    }
    return found;
  }
  const argument* read(const char* names) const {
    const place p = look(names);
    if (p.value) r_.read.insert(p.slot);
    return p.value;
  }

  array tensor_of(const argument& a, const char* names) const {
    if (a.kind == "T") {
      for (const char* role : {"in", "param", "buffer", "init"})
        if (const array* t = r_.c.find(role, a.value)) return *t;
    } else if (a.kind == "f" || a.kind == "i") {
      const auto x = static_cast<float>(number_of(a.value, names));
      array t{"", "", "float32", {}, std::vector<char>(sizeof x)};
      std::memcpy(t.bytes.data(), &x, sizeof x);
      return t;
    }
    throw form_not_there{std::string(names) + " is no tensor"};
  }
  static double number_of(const std::string& text, const char* names) {
    char* end = nullptr;
    const double x = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end) throw form_not_there{std::string(names) + " is " + text};
    return x;
  }
  /// The numbers of an argument of one of these kinds, or of a tensor of at most one axis whose element type begins in
  /// one of these ways.
  std::vector<double> values(const argument& a, const char* names, const char* kinds, const char* types) const {
    const auto one_of = [](const char* list, auto fits) {
      const std::vector<std::string> all = split(list, ' ');
      return std::any_of(all.begin(), all.end(), fits);
    };
    if (a.kind == "T") {
      const array t = tensor_of(a, names);
      if (!one_of(types, [&](const std::string& type) { return t.dtype.starts_with(type); }) || t.extents.size() > 1)
        throw form_not_there{std::string(names) + " is a tensor of " + t.dtype};
      return numbers(t);
    }
    if (!one_of(kinds, [&](const std::string& kind) { return a.kind == kind; }))
      throw form_not_there{std::string(names) + " is " + a.value};
    std::vector<double> list;
    for (const std::string& x : split(a.value, ',')) list.push_back(number_of(x, names));
    return list;
  }
  static double only_one(const std::vector<double>& values, const char* names) {
    if (values.size() != 1) throw form_not_there{std::string(names) + " is a list"};
    return values[0];
  }
  std::string text_of_kind(const char* kind, const char* names, const std::string& otherwise) const {
    const argument* a = read(names);
    if (a && a->kind != kind) throw form_not_there{std::string(names) + " is " + a->value};
    return a ? a->value : otherwise;
  }

  run& r_;

 private:
  const array* result_number(const char* role) const {
    std::size_t n = 0;
    for (const array& a : r_.c.arrays)
      if (a.role == "out" && n++ == r_.results.size()) return r_.c.find(role, a.name);
    return nullptr;
  }
  /// A cotangent; PyTorch gives those of a double in float too.
  template <class T>
  sinter::tensor<T, 1> seed_of(const array& a) const {
    if (a.dtype == dtype_of<T>()) return constant<T, 1>(flat(a));
    return sinter::cast<T>(constant<float, 1>(flat(a)));
  }
  template <class T, int R>
  static result result_of(const sinter::tensor<T, R>& y) {
    const auto dense = y.contiguous();
    return {{dense.shape().begin(), dense.shape().end()},
            std::is_same_v<T, bool> ? 'b'
            : std::is_integral_v<T> ? 'i'
                                    : 'f',
            std::vector<double>(dense.begin(), dense.end())};
  }
  template <class T, int R>
  void record(const sinter::tensor<T, R>& y) const {
    r_.results.push_back(result_of(y));
  }
};

/// A call whose operands have elements of type T.
template <class T>
class operands : public call {
 public:
  using call::call;
  using element = T;

  /// The tensor as a variable where T is float, with rank R.
  template <int R>
  auto x(const array& a) const {
    auto t = constant<T, R>(a);
    if constexpr (std::is_same_v<T, float>) {
      sinter::variable v = std::move(t);
      const auto gradient = [v] {
        if (!v.has_grad()) return std::vector<double>(static_cast<std::size_t>(v.numel()));
        const auto g = v.grad().contiguous();
        return std::vector<double>(g.begin(), g.end());
      };
      r_.leaves.push_back({a.name, gradient});
      return v;
    } else {
      return t;
    }
  }
  template <int R>
  auto x(const char* names) const {
    return x<R>(tensor_of(names));
  }
  auto flat_x(const char* names) const { return x<1>(flat(tensor_of(names))); }
  /// An argument that is two tensors.
  template <int R>
  auto pair(const char* names) const {
    const argument* a = read(names);
    const std::vector<std::string> both = a && a->kind == "Ts" ? split(a->value, ',') : std::vector<std::string>();
    if (both.size() != 2) throw form_not_there{std::string(names) + " is no pair"};
    const auto one = [&](const std::string& name) { return x<R>(tensor_of({"T", name}, names)); };
    auto first = one(both[0]);
    return std::pair(std::move(first), one(both[1]));
  }
};

}  // namespace judge
