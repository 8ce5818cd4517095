// sinter/nn/module_list.hpp: a run-time number of modules of one type.
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "sinter/core/number.hpp"
#include "sinter/core/view.hpp"
#include "sinter/nn/module.hpp"

namespace sinter {

// Names in messages.
struct module_list_has_no_forward;
struct call_its_modules_in_a_loop;

namespace nn {

/// Modules of one type, their number known at run time, as torch.nn.ModuleList. It has no forward: the module that
/// holds it calls them. Parameters are named "0.weight", "1.weight", ...
///
///     nn::module_list layers(12, [&] { return nn::linear(64, 64, gen); });
///     for (const auto& layer : layers) h = layer(h);
template <is_module M>
class module_list : public module<module_list<M>> {
 public:
  using device_type = device_of<M>;
  using kind = typename M::kind;
  template <class D, class K>
  using rebind = module_list<typename detail::rebound<M, D, K>::type>;
  template <class K>
  using as = module_list<typename detail::kind_changed<M, K>::type>;
  using no_forward = sinter::detail::mistake<module_list_has_no_forward, call_its_modules_in_a_loop>;

  module_list() = default;
  explicit module_list(std::vector<M> modules) : modules_(std::move(modules)) {}
  /// n modules, each what make() or make(its number) gives. Errors: value_error for a negative n.
  template <class Make>
    requires(std::invocable<Make&, index_t> || std::invocable<Make&>)
  module_list(sinter::detail::whole n, Make make) {
    if (n < 0) sinter::detail::refuse<value_error>({"module_list: ", index_t{n}, " modules"});
    modules_.reserve(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i) {
      if constexpr (std::invocable<Make&, index_t>) modules_.push_back(make(i));
      else modules_.push_back(make());
    }
  }

  void push_back(M m) { modules_.push_back(std::move(m)); }
  index_t size() const noexcept { return static_cast<index_t>(modules_.size()); }
  bool empty() const noexcept { return modules_.empty(); }

  /// Module number i; counted from the end where i is negative. Errors: index_error.
  M& operator[](sinter::detail::whole i) { return modules_[place(i)]; }
  const M& operator[](sinter::detail::whole i) const { return modules_[place(i)]; }

  auto begin() noexcept { return modules_.begin(); }
  auto end() noexcept { return modules_.end(); }
  auto begin() const noexcept { return modules_.begin(); }
  auto end() const noexcept { return modules_.end(); }

  template <class X, class Problem = no_forward::problem, class Fix = no_forward::fix>
  void operator()(X&&) const = delete;

  /// Of several lists, a first that can be written to is one to be filled: it gets as many modules as the others hold.
  template <class F, class First, class... Rest>
  static void visit(F&& f, First& first, Rest&... rest) {
    if constexpr (std::is_const_v<First>) (refuse_other_size(first, rest), ...);
    else (first.modules_.resize(rest.modules_.size()), ...);
    for (std::size_t i = 0; i < first.modules_.size(); ++i)
      f(std::to_string(i), first.modules_[i], rest.modules_[i]...);
  }

 private:
  template <is_module>
  friend class module_list;

  std::size_t place(index_t i) const {
    const index_t from_start = i < 0 ? i + size() : i;
    if (from_start < 0 || from_start >= size())
      sinter::detail::refuse<index_error>({"module_list: there is no module ", i, " among ", size()});
    return static_cast<std::size_t>(from_start);
  }

  template <class A, class B>
  static void refuse_other_size(const A& a, const B& b) {
    if (a.size() != b.size())
      sinter::detail::refuse<shape_error>({"module_list: ", a.size(), " modules beside ", b.size()});
  }

  std::vector<M> modules_;
};

template <class Make>
  requires std::invocable<Make&, index_t>
module_list(sinter::detail::whole, Make) -> module_list<std::invoke_result_t<Make&, index_t>>;
template <class Make>
  requires(std::invocable<Make&> && !std::invocable<Make&, index_t>)
module_list(sinter::detail::whole, Make) -> module_list<std::invoke_result_t<Make&>>;

}  // namespace nn
}  // namespace sinter
