// sinter/expr/explain.hpp: what evaluating an expression will run: kernels, formulas, bytes.
#pragma once

#include <string>
#include <vector>

#include "sinter/expr/evaluate.hpp"

namespace sinter {

namespace detail {

/// Kernels that run for the points of E and everything before them.
template <class E>
constexpr int kernels_of_points() {
  if constexpr (is_tensor<E> || is_variable<E>) return 0;
  else return E::points;
}

template <class E>
constexpr int count_kernels() {
  if constexpr (is_tensor<E> || is_variable<E>) return 0;
  else if constexpr (is_point<E> || can_fuse_into_point<E>()) return kernels_of_points<E>();
  else return kernels_of_points<E>() + 1;
}

struct kernel_description {
  std::string formula;
  index_t bytes = 0;
};

struct explainer {
  std::vector<kernel_description> kernels;
  addresses seen;  // memory that the current kernel reads already
  index_t read = 0;
  int names = 0;
  bool variants = false;  // of some kernel, for several sets of instructions

  explainer();
  explainer(const explainer&) = delete;
  explainer& operator=(const explainer&) = delete;
  ~explainer();

  template <class T, auto S, device D>
  void count(const tensor<T, S, D>& t) {
    if (!seen.add(access::data(t))) return;
    index_t n = 1;
    for (int d = 0; d < t.rank; ++d) n *= t.strides()[d] == 0 ? 1 : t.shape()[d];
    read += n * static_cast<index_t>(sizeof(T));
  }

  /// The formula of e; points inside become kernels of their own, named k1, k2, ...
  template <class E>
  std::string formula(const E& e) {
    if constexpr (is_constant<E>) {
      return without_zeros(std::to_string(e.value));
    } else if constexpr (is_tensor<E> || is_variable<E>) {
      if constexpr (is_variable<E>) count(access::value_of(e));
      else count(e);
      return std::string(is_variable<E> ? "variable" : "tensor") + shape_text(e.shape());
    } else if constexpr (is_point<E>) {
      const std::string name = point(e);
      read += e.shape().numel() * static_cast<index_t>(sizeof(element_of<E>));
      return name;
    } else if constexpr (requires { E::op_type::is_hidden; }) {
      return formula(e.a);
    } else if constexpr (requires { E::op_type::name; }) {
      return std::string(E::op_type::name) + "(" + operands(e) + ")";
    } else if constexpr (requires { e.body; }) {
      return "let(" + formula(e.x) + ", " + formula(e.body) + ")";
    } else {
      return "t";
    }
  }

  template <class E>
  std::string operands(const E& e) {
    std::string text;
    if constexpr (requires { e.operands; })
      e.operands.each([&](const auto& one) { text += (text.empty() ? "" : ", ") + operand(e, one); });
    if constexpr (requires { e.a; }) text = formula(e.a);
    if constexpr (requires { e.b; }) text += ", " + formula(e.b);
    if constexpr (requires { e.c; }) text += ", " + formula(e.c);
    return text;
  }

  /// An operand of a kernel op: the name of a kernel where the op needs the value of a formula.
  template <class E, class X>
  std::string operand(const E& e, const X& x) {
    if constexpr (!is_tensor<X> && !is_variable<X> && requires { e.op.evaluates_first(x); }) {
      if (e.op.evaluates_first(x)) {
        constexpr auto size = static_cast<index_t>(sizeof(element_of<X>));
        const index_t value = x.shape().numel() * size;
        std::string name = kernel(value, [&] { return formula(x); });
        if (!e.op.pads_by_copy()) {
          read += value;
          return name;
        }
        const index_t copy = e.op.padded(x.shape(), e.operands.template get<1>().shape()).numel() * size;
        name = kernel(copy, [&] {
          read = value;
          return "pad(" + name + ")";
        });
        read += copy;
        return name;
      }
    }
    return formula(x);
  }

  /// Lists the kernel of a point and returns its name.
  template <class E>
  std::string point(const E& e) {
    if constexpr (requires { requires E::has_variants; }) variants = true;
    return kernel(e.shape().numel() * static_cast<index_t>(sizeof(element_of<E>)),
                  [&] { return std::string(E::explained_as()) + "(" + operands(e) + ")"; });
  }
  /// Lists a kernel that computes formula() and writes so many bytes; returns its name.
  template <class F>
  std::string kernel(index_t written, const F& formula) {
    return kernel(written, [](const void* f) { return (*static_cast<const F*>(f))(); }, &formula);
  }
  std::string kernel(index_t written, std::string (*write)(const void*), const void* context);

  template <class E>
  void whole(const E& e) {
    if constexpr (is_point<E>) {
      point(e);
    } else if constexpr (!is_tensor<E> && !is_variable<E>) {
      const std::string text = formula(e);
      const index_t written = e.shape().numel() * static_cast<index_t>(sizeof(element_of<E>));
      if constexpr (can_fuse_into_point<E>()) {
        // The bare result of the point is neither written nor read again.
        const auto& p = point_of(e);
        const index_t bare_result = p.shape().numel() * static_cast<index_t>(sizeof(element_of<bare<decltype(p)>>));
        finish_point(text, read - 2 * bare_result + written);
      } else {
        finish(text, read + written);
      }
    }
  }
  /// Lists the kernel that writes the result.
  void finish(const std::string& text, index_t bytes);
  /// The kernel that was listed last writes the result, too.
  void finish_point(const std::string& text, index_t bytes);

  index_t bytes() const;
  /// As explain() has it.
  std::string text(const std::string& where, bool allocates, bool synchronises) const;

  static std::string without_zeros(std::string number);
};

#if SINTER_DEFINES

SINTER_SHARED explainer::explainer() = default;
SINTER_SHARED explainer::~explainer() = default;

SINTER_SHARED std::string explainer::kernel(index_t written, std::string (*write)(const void*), const void* context) {
  const addresses outer_seen = std::move(seen);
  const index_t outer_read = read;
  seen.clear();
  read = 0;
  const std::string text = write(context);
  const std::string name = "k" + std::to_string(++names);
  kernels.push_back({name + " = " + text, read + written});
  seen = outer_seen;
  read = outer_read;
  return name;
}
SINTER_SHARED void explainer::finish(const std::string& text, index_t bytes) {
  kernels.push_back({"result = " + text, bytes});
}
SINTER_SHARED void explainer::finish_point(const std::string& text, index_t bytes) {
  kernel_description& k = kernels.back();
  k.formula += "; result = " + text;
  k.bytes += bytes;
}

SINTER_SHARED index_t explainer::bytes() const {
  index_t total = 0;
  for (const auto& k : kernels) total += k.bytes;
  return total;
}
SINTER_SHARED std::string explainer::text(const std::string& where, bool allocates, bool synchronises) const {
  std::string text;
  for (const auto& k : kernels) text += k.formula + "  [" + std::to_string(k.bytes) + " bytes]\n";
  return text + std::to_string(kernels.size()) + (kernels.size() == 1 ? " kernel, " : " kernels, ") +
         std::to_string(bytes()) + " bytes on " + where +
         (allocates ? ", allocates" : ", allocates nothing in between") +
         (synchronises ? "" : ", does not wait for the device") + "\n";
}

SINTER_SHARED std::string explainer::without_zeros(std::string number) {
  if (number.find('.') != std::string::npos) {
    while (number.back() == '0') number.pop_back();
    if (number.back() == '.') number.pop_back();
  }
  return number;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// How many kernels evaluating an E runs, as far as types tell; elementwise work that fits a reduction or product
/// counts as part of it.
///
///     static_assert(kernel_count<decltype(relu(a * b + c))> == 1);
template <expression E>
inline constexpr int kernel_count = detail::count_kernels<detail::bare<E>>();

/// True if evaluating an E into existing memory, as `y = e` does where y is the only handle, takes more memory for
/// intermediate values. Elementwise work does not; points keep their results, and tracked expressions a graph.
///
///     static_assert(!allocates<decltype(a * b + c)>);
template <expression E>
inline constexpr bool allocates = detail::points_in<detail::bare<E>> > 0 || is_tracked_v<E>;

/// Is the value of an E there when its statement ends? So it is on the host devices; on a GPU no expression waits,
/// which is why all of them can be captured. item(), to<cpu>() and synchronize() wait.
template <expression E>
inline constexpr bool synchronises = is_cpu_v<device_of<E>>;

/// Bytes that evaluating e reads and writes: each leaf once per kernel, each result once.
template <expression E>
index_t bytes_moved(const E& e) {
  detail::explainer x;
  x.whole(e);
  return x.bytes();
}

/// The kernels that evaluating e will run, one a line, with formula and bytes; then their sum, for which instructions
/// the library's own kernels were chosen where it holds them for several (docs/shipping.md), and whether it allocates
/// and waits.
///
///     std::cout << explain(relu(linear(x, w, b)));
template <expression E>
std::string explain(const E& e) {
  detail::explainer x;
  x.whole(e);
  std::string where = device_name<device_of<E>>();
  if constexpr (is_cpu_v<device_of<E>>)
    if (const char* const chosen = detail::backend<device_of<E>>::chosen_instructions();
        x.variants && chosen != nullptr)
      where += std::string(" (kernels for ") + chosen + ")";
  return x.text(where, allocates<E>, synchronises<E>);
}

}  // namespace sinter
