// tests/judge/call.hpp: what a row sees of a case: its arguments as tensors and numbers, and where its results go.
//
// Tensors are shown with the rank the row asks for, 1s in front, so that one instantiation serves all ranks; axes are
// counted accordingly, and shapes of results are compared without the 1s in front. Floats are variables, so that
// gradients come along.
#pragma once

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
  std::set<std::string> used{"device", "requires_grad", "num_batches_tracked"};
  std::vector<result> results;
  struct leaf {
    std::string name;
    std::function<std::vector<double>()> gradient;
  };
  std::vector<leaf> leaves;
};

class call {
 public:
  explicit call(run& r) : r_(r) {}

  /// The argument of the first of these names, separated by blanks, that the case has and that is not None; or null.
  const argument* find(const char* names) const {
    for (const std::string& name : split(names, ' ')) {
      const auto at = r_.c.arguments.find(name);
      if (at == r_.c.arguments.end()) continue;
      r_.used.insert(name);
      if (at->second.kind != "n") return &at->second;
    }
    return nullptr;
  }
  /// An argument that is a tensor, or a number as one.
  array tensor_of(const char* names) const { return tensor_of(needed(names), names); }

  /// The tensors of a list (PyTorch), or all inputs (ONNX).
  std::vector<array> tensors() const {
    std::vector<array> list;
    if (onnx()) {
      for (int i = 0; find(std::to_string(i).c_str()); ++i) list.push_back(tensor_of(std::to_string(i).c_str()));
    } else {
      for (const std::string& name : split(needed("0 tensors").value, ',')) list.push_back(tensor_of({"T", name}, "0"));
    }
    return list;
  }

  double number(const char* names, double otherwise) const {
    const argument* a = find(names);
    if (!a) return otherwise;
    const std::vector<double> values = list(*a);
    if (values.size() != 1) throw form_not_there{std::string(names) + " is no number"};
    return values[0];
  }
  index_t integer(const char* names, index_t otherwise) const {
    return static_cast<index_t>(number(names, static_cast<double>(otherwise)));
  }
  bool flag(const char* names, bool otherwise) const { return number(names, otherwise) != 0; }
  std::string text(const char* names, const char* otherwise) const {
    const argument* a = find(names);
    return a ? a->value : otherwise;
  }
  shape integers(const char* names) const {
    shape s;
    if (const argument* a = find(names))
      for (double x : list(*a)) s.push_back(static_cast<index_t>(x));
    return s;
  }
  /// The library has the op for one value of this argument only.
  void only(const char* names, double value) const { only(names, value, value); }
  void only(const char* names, double value, double otherwise) const {
    if (number(names, otherwise) != value) throw form_not_there{names};
  }
  void only_text(const char* names, const char* value) const {
    if (text(names, value) != value) throw form_not_there{names};
  }

  bool onnx() const { return r_.c.onnx; }
  int rank(const char* names) const { return static_cast<int>(tensor_of(names).extents.size()); }
  /// Where an axis of the first tensor is once that has rank R.
  index_t shown_axis(index_t axis, int R) const {
    const int rank_of_input = rank("0 input");
    if (axis < -rank_of_input || axis >= rank_of_input) throw form_not_there{"axis of a scalar"};
    return axis < 0 ? axis : axis + R - rank_of_input;
  }
  index_t axis(const char* names, index_t otherwise, int R = 4) const {
    return shown_axis(integer(names, otherwise), R);
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

  /// A result: a tensor, a variable, an expression, or the values and indices that an op gives.
  template <class E>
  void give(const E& e) const {
    if constexpr (requires { e.indices; }) {
      give(e.values);
      give(e.indices);
    } else {
      const auto y = sinter::eval(e);
      const array* seed = result_number("cot");
      if constexpr (requires { y.backward(y.value()); }) {
        record(y.value());
        // A result of another size fails by its shape.
        if (seed && numbers(*seed).size() == r_.results.back().values.size())
          y.backward(constant<sinter::element_of<decltype(y)>, 1>(flat(*seed)).reshape(y.shape()));
      } else {
        record(y);
      }
    }
  }
  /// A result that has the shape of an argument, computed in another.
  template <class E>
  void give_like(const char* names, const E& e) const {
    give(e);
    r_.results.back().extents = tensor_of(names).extents;
  }
  /// A result of the case that the library does not have.
  void skip() const { r_.results.push_back({{}, 's', {}}); }

  static array flat(array a) {
    index_t n = 1;
    for (index_t extent : a.extents) n *= extent;
    a.extents = {n};
    return a;
  }

 protected:
  const argument& needed(const char* names) const {
    if (const argument* a = find(names)) return *a;
    throw form_not_there{"no " + std::string(names)};
  }
  array tensor_of(const argument& a, const char* names) const {
    if (a.kind == "T") {
      for (const char* role : {"in", "param", "buffer", "init"})
        if (const array* t = r_.c.find(role, a.value)) return *t;
    } else if (a.kind == "f" || a.kind == "i") {
      const float x = std::stof(a.value);
      array t{"", "", "float32", {}, std::vector<char>(sizeof x)};
      std::memcpy(t.bytes.data(), &x, sizeof x);
      return t;
    }
    throw form_not_there{std::string(names) + " is no tensor"};
  }
  std::vector<double> list(const argument& a) const {
    if (a.kind == "T") return numbers(tensor_of(a, "argument"));
    std::vector<double> values;
    if (std::string("i f b is fs").find(a.kind) == std::string::npos) throw form_not_there{"argument " + a.value};
    for (const std::string& x : split(a.value, ',')) {
      char* end = nullptr;
      values.push_back(std::strtod(x.c_str(), &end));
      if (end == x.c_str() || *end) throw form_not_there{"argument " + a.value};
    }
    return values;
  }

  run& r_;

 private:
  const array* result_number(const char* role) const {
    std::size_t n = 0;
    for (const array& a : r_.c.arrays)
      if (a.role == "out" && n++ == r_.results.size()) return r_.c.find(role, a.name);
    return nullptr;
  }
  template <class T, int R>
  void record(const sinter::tensor<T, R>& y) const {
    const auto dense = y.contiguous();
    r_.results.push_back({{dense.shape().begin(), dense.shape().end()},
                          std::is_same_v<T, bool> ? 'b'
                          : std::is_integral_v<T> ? 'i'
                                                  : 'f',
                          std::vector<double>(dense.begin(), dense.end())});
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
};

}  // namespace judge
