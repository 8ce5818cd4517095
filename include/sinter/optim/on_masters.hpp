// sinter/optim/on_masters.hpp: a rule that steps float copies of the parameters of half and bfloat16.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "sinter/optim/optimizer.hpp"

namespace sinter::optim::detail {

/// What a rule reads: the master of a parameter, and its gradient in float. A parameter that is not its master rounded
/// was changed by someone else, or has no master yet; then its value counts.
template <class T>
struct widen_kernel {
  static constexpr int leaves = 3, outputs = 2;
  using C = compute_type<T>;
  using leaf_types = sinter::detail::kernel::type_list<T, C, T>;
  using output_types = sinter::detail::kernel::type_list<C, C>;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    const auto p = m.template load<0, T>();
    const auto master = m.template load<1, C>();
    m.template put<0, C>(math::select(math::rounded<T>(master) == p, master, p));
    m.template put<1, C>(m.template load<2, T>());
  }
};
/// parameter = master.
template <class T>
struct round_kernel {
  static constexpr int leaves = 1, outputs = 1;
  using leaf_types = sinter::detail::kernel::type_list<compute_type<T>>;
  using output_types = sinter::detail::kernel::type_list<T>;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    m.template put<0, T>(m.template load<0, compute_type<T>>());
  }
};

/// Of a parameter of half or bfloat16: its master, and what Rule keeps for that.
template <class Rule, class T, device D>
class master_state {
  using C = compute_type<T>;
  using inner_state = typename Rule::template state<C, D>;
  using options = typename Rule::options;

 public:
  template <class F>
  void each_saved(const F& f)
    requires has_saved_state<Rule, C, D>
  {
    f("master", master_);
    inner_.each_saved(f);
  }

  void reserve(index_t n, const options& o) {
    master_.reserve(n);
    inner_.reserve(n, o);
  }
  /// A gradient in float for update(); heap memory as well, of which the step itself takes none.
  void reserve_for(const flat_parameter<T, D>& p) {
    const auto g = tensor<C, 1, D>::uninitialized({{p.numel()}});
    if (p.matrix()[0] < 0) return keep<1>(master_.flat(), g);
    const tensor<C, 2, D> values = master_.as_table(p.matrix()), gradient = g.reshape(p.matrix());
    if (p.by_columns()) keep<2>(values.transpose(), gradient.transpose());
    else keep<2>(values, gradient);
  }
  void count(const options& o, double lr)
    requires requires(inner_state& s) { s.count(o, lr); }
  {
    inner_.count(o, lr);
  }
  void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
    const at_once passes;  // each reads what the one before wrote
    const flat_parameter<C, D> wide = *std::exchange(wide_, std::nullopt);
    run_update<D>(widen_kernel<T>(), p.numel(), {p.data(), wide.data(), p.grad()}, {wide.data(), wide.grad()});
    inner_.update(wide, o, lr, gradient_scale);
    run_update<D>(round_kernel<T>(), p.numel(), {wide.data()}, {p.data()});
  }

  void reserve_rows(const row_gradient<T, D>& g)
    requires steps_rows<Rule>
  {
    const extents<2>& shape = g.values.shape();
    const extents<2> table{{shape[1] > 0 ? master_.flat().numel() / shape[1] : 0, shape[1]}};
    rows_ = {tensor<T, 2, D>::uninitialized(shape), tensor<C, 2, D>::uninitialized(shape),
             tensor<C, 2, D>::uninitialized(shape)};
    wide_.emplace("", row_sparse(master_.as_table(table)));
    inner_.reserve_rows({g.rows, rows_.gradient});
  }
  void update_rows(const flat_parameter<T, D>& p, const row_gradient<T, D>& g, const options& o, double lr,
                   double gradient_scale)
    requires steps_rows<Rule>
  {
    using sinter::detail::move_rows;
    using way = ops::move_rows::way;
    const at_once passes;
    const room_of_rows here = std::exchange(rows_, {});
    const flat_parameter<C, D> wide = *std::exchange(wide_, std::nullopt);
    const tensor<T, 2, D> table = p.table();
    const tensor<C, 2, D> masters = wide.table();
    const index_t n = g.values.numel();
    move_rows(way::take, table, row_gradient<T, D>{g.rows, here.values});
    move_rows(way::take, masters, row_gradient<C, D>{g.rows, here.masters});
    run_update<D>(widen_kernel<T>(), n, {access::data(here.values), access::data(here.masters), access::data(g.values)},
                  {access::data(here.masters), access::data(here.gradient)});
    move_rows(way::put, masters, row_gradient<C, D>{g.rows, here.masters});
    inner_.update_rows(wide, {g.rows, here.gradient}, o, lr, gradient_scale);
    move_rows(way::take, masters, row_gradient<C, D>{g.rows, here.masters});
    run_update<D>(round_kernel<T>(), n, {access::data(here.masters)}, {access::data(here.values)});
    move_rows(way::put, table, row_gradient<T, D>{g.rows, here.values});
  }

 private:
  struct room_of_rows {
    tensor<T, 2, D> values;
    tensor<C, 2, D> masters, gradient;
  };

  template <int R>
  void keep(const tensor<C, R, D>& values, const tensor<C, R, D>& g) {
    const variable<C, R, D> v = values;
    auto& state = static_cast<sinter::detail::typed_state<C, R, D>&>(*access::state_of(v).get());
    state.kept = g;
    state.has_kept = true;
    wide_.emplace("", v);
  }

  running<T, D> master_;
  inner_state inner_;
  // From what reserves to the update.
  std::optional<flat_parameter<C, D>> wide_;  ///< the master, with its gradient where that is dense; of p's shape
  room_of_rows rows_;
};

/// Rule for a master, where a parameter is of half or bfloat16; for others as it is.
template <class Rule>
struct on_masters {
  using options = typename Rule::options;
  template <class T, device D>
  using state = std::conditional_t<narrow_element<T>, master_state<Rule, T, D>, typename Rule::template state<T, D>>;

  static void validate(const options& o) { Rule::validate(o); }
  static void validate_rows(const options& o)
    requires steps_rows<Rule>
  {
    Rule::validate_rows(o);
  }
  static void validate_matrix(const extents<2>& shape, const std::string& label)
    requires requires { Rule::validate_matrix(shape, label); }
  {
    Rule::validate_matrix(shape, label);
  }
};

}  // namespace sinter::optim::detail
