// sinter/ops/detail/kernel_op.hpp: the expression of every op with a kernel of its own, and what its function checks.
#pragma once

#include "sinter/core/owned_ptr.hpp"
#include "sinter/expr/declare.hpp"
#include "sinter/grad/kernel_graph.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct operands_of_element_types;
template <int...>
struct operands_of_ranks;
struct use_floating_point_operands_of_one_type;
template <int Least, int Most>
struct use_an_operand_of_rank;
struct value_that_let_names_in_a_kernel_of_its_own;
struct evaluate_it_before_let;

namespace ops {

/// Base of an op with kernels of its own (see is_kernel_op). What stands here an op may replace. An op of several
/// functions may have a member `called`, the name of one of them for errors of backward.
struct kernel_op {
  template <device D>
  static constexpr bool has_kernels_on = false;
  static constexpr take takes(int) { return take::dense; }
  /// May a kernel take an operand of type A with the elementwise work on it, where takes() asks for it evaluated?
  template <class A>
  static constexpr bool takes_formula(int) {
    return false;
  }
  /// How results lie in memory, their gradients, and the operands that kernels take dense, but for what format_of says.
  static constexpr memory_format format = memory_format::contiguous;
  /// How kernels take this tensor where takes(i) asks for operand i dense, if not in Op's format.
  template <class Op, class X>
  static memory_format format_of(int, const X&) {
    return Op::format;
  }
  /// Do results lie in memory as the first operand does, in place of a format? Kernels then take all with strides.
  static constexpr bool keeps_order = false;
  /// May elementwise work on the result run inside the kernel?
  static constexpr bool takes_epilogue = false;
  /// Does the kernel leave the last step of a row to that work?
  static constexpr bool by_rows = false;
  /// An op along an axis: are its lines neighbouring elements of a dense result of this shape? Elementwise work on
  /// other results does not run inside.
  template <int R>
  static constexpr bool has_rows_side_by_side(const extents<R>&) {
    return true;
  }
  /// May the kernel also store the value that this work starts from, where the derivative of the work reads it?
  static constexpr bool keeps_input = false;
  /// Is backward one elementwise pass over the shape of the only operand x? Then it is that of the expression
  /// derivative_of(x, value), and the gradient of the result is broadcast from kept_shape(x.shape()).
  static constexpr bool reverses_elementwise = false;
  /// Can gradients be differentiated? They are then such a pass, or the expressions grad<I>(g, operands..., result).
  static constexpr bool differentiable_twice = false;
  /// The element type and the rank of the result: those of the first operand.
  template <class T, class...>
  using result = T;
  static constexpr int rank(int first, ...) { return first; }
  /// What forward returns for backward, for elements T on D.
  template <class T, device D>
  using saves = sinter::detail::nothing_saved;

 protected:
  /// For mistake(): all operands have one floating-point type, and the first a rank from Least to Most.
  template <int Least, int Most, class First, class... Rest>
  static constexpr auto floating_of_rank() {
    using namespace sinter::detail;
    if constexpr (!floating_element<element_of<First>> || !(std::is_same_v<element_of<First>, element_of<Rest>> && ...))
      return sinter::detail::mistake<operands_of_element_types<element_of<First>, element_of<Rest>...>,
                                     use_floating_point_operands_of_one_type>{};
    else if constexpr (rank_of<First> < Least || rank_of<First> > Most)
      return sinter::detail::mistake<operands_of_ranks<rank_of<First>, rank_of<Rest>...>,
                                     use_an_operand_of_rank<Least, Most>>{};
    else return fitting<element_of<First>>{};
  }
};

/// An op with kernels of its own: a class derived from kernel_op, not final, with these members and its parameters.
/// docs/adding-a-kernel-op.md goes through an example. False, never an error, for any other type.
template <class Op>
concept is_kernel_op =
    sinter::detail::is_derived<Op, kernel_op> &&
    // static constexpr const char* name: as messages and explain() call it.
    sinter::detail::has_name<Op> &&
    // shape(x.shape(), ...): the shape of the result, an extents; throws shape_error where operands do not fit.
    sinter::detail::has_shape<Op> &&
    // grad_uses[I]: what the gradient of operand I reads: uses::first, uses::result, ... Operands behind the last entry
    // have no gradient.
    sinter::detail::has_grad_uses<Op> &&
    // mistake<A...>(): fitting<T>, or what is wrong with operands of these types, all of one device.
    sinter::detail::has_mistake<Op>;

/// True; for a class that is no kernel op, an error that names what is missing.
template <class Op>
constexpr bool check_kernel_op() {
  constexpr bool base = sinter::detail::is_derived<Op, kernel_op>;
  static_assert(base, "sinter: a kernel op derives from 'ops::kernel_op'; see docs/adding-a-kernel-op.md");
  if constexpr (base) {
    constexpr bool name = sinter::detail::has_name<Op>, shape = sinter::detail::has_shape<Op>,
                   gradients = sinter::detail::has_grad_uses<Op>, types = sinter::detail::has_mistake<Op>;
    static_assert(name,
                  "sinter: a kernel op needs 'static constexpr const char* name'; see docs/adding-a-kernel-op.md");
    static_assert(shape, "sinter: a kernel op needs its shape rule, 'shape'; see docs/adding-a-kernel-op.md");
    static_assert(gradients, "sinter: a kernel op needs 'grad_uses'; see docs/adding-a-kernel-op.md");
    static_assert(types, "sinter: a kernel op needs its check of types, 'mistake'; see docs/adding-a-kernel-op.md");
  }
  return true;
}

}  // namespace ops

namespace detail {

/// The names of a kernel op and of what runs in its epilogue.
template <class Op, class Epilogue>
inline constexpr work_names names_of_point{Op::name};
template <class Op, class Epilogue>
  requires requires { typename Epilogue::tree; }
inline constexpr work_names names_of_point<Op, Epilogue> = list_names_of_ops<typename Epilogue::tree>(Op::name);

template <class Op, class... A>
constexpr auto find_kernel_mistake() {
  if constexpr ((is_assignment<A> || ...)) return operand_check<A...>{};
  else if constexpr (!(expression<A> && ...)) return no_operands<A...>{};
  else if constexpr (!devices_agree<A...>)
    return mistake<operands_on_different_devices<device_of<A>...>, copy_one_operand_with_dot_to>{};
  else if constexpr ((reads_name<A> || ...))
    return mistake<value_that_let_names_in_a_kernel_of_its_own, evaluate_it_before_let>{};
  else if constexpr (requires { Op::template mistake<A...>(); }) return Op::template mistake<A...>();
  else return not_operands{};
}
/// fitting<T>, a mistake, or not_operands, of Op's operands.
template <class Op, class... A>
using kernel_check = decltype(find_kernel_mistake<Op, bare<A>...>());
template <class Op, class... A>
concept takes_operands = is_fitting<kernel_check<Op, A...>>;

template <class Op, int I, class A>
inline constexpr bool is_taken_as_formula =
    Op::takes(I) == ops::take::formula || Op::template takes_formula<bare<A>>(I);
/// Operand I of Op as its expression holds it.
template <class Op, int I, class A>
using operand_of = std::conditional_t<Op::takes(I) == ops::take::expression, bare<A>,
                                      std::conditional_t<is_taken_as_formula<Op, I, A>, prologue_of<A>, evaluated<A>>>;
template <class Op, int I, class A>
operand_of<Op, I, A> take_operand(A&& a) {
  check_defined(Op::name, a);
  if constexpr (Op::takes(I) == ops::take::expression) return bare<A>(std::forward<A>(a));
  else if constexpr (is_taken_as_formula<Op, I, A>) return prologue(std::forward<A>(a));
  else if constexpr (Op::takes(I) == ops::take::strided) return eval_to_read(std::forward<A>(a));
  else {
    evaluated<A> value = eval_to_read(std::forward<A>(a));
    return value.to_memory_format(Op::template format_of<Op>(I, plain(value)));
  }
}
/// An operand as kernels see it: tensors plain, formulas as they are, with values in place of points.
template <class E>
decltype(auto) to_kernel(const E& e) {
  if constexpr (is_point<E>) return sinter::detail::plain(e.result());
  else if constexpr (points_in<E> > 0) return materialise(e);
  else return sinter::detail::plain(e);
}

/// What errors of backward call an op: the function of several that it was made by, or its name.
template <class Op>
const char* called(const Op& op) {
  if constexpr (requires { op.called; }) return op.called;
  else return Op::name;
}

template <class Op>
constexpr bool is_differentiable(int operand) {
  return operand < static_cast<int>(sizeof(Op::grad_uses) / sizeof(unsigned));
}

}  // namespace detail

/// op(a, ...), a point; see ops::kernel_op. A are its operands as its kernels take them.
template <class Op, class... A>
struct [[nodiscard]] kernel_expr;

namespace detail {

template <class Op, class... A>
using kernel_base = point_base<kernel_expr<Op, A...>, typename Op::template result<element_of<A>...>,
                               Op::rank(rank_of<A>...), typename first_device<A...>::type,
                               order_of_value<typename Op::template result<element_of<A>...>>(larger(A::order...))>;

/// The op whose kernels and tape entry an op has: Op::runs_as, an op that Op derives from and differs from in name, or
/// itself.
template <class Op>
struct running_op {
  using type = Op;
};
template <class Op>
  requires requires { typename Op::runs_as; }
struct running_op<Op> {
  using type = typename Op::runs_as;
};

template <class Op, class... A, int... I>
auto kernel_entry(std::integer_sequence<int, I...>) {
  using B = kernel_base<Op, A...>;
  return std::type_identity<kernel_backward<typename running_op<Op>::type, element_of<B>, B::rank, device_of<B>,
                                            typename Op::template saves<element_of<B>, device_of<B>>,
                                            operand_kept<A, (operands_read<Op>() >> I & 1) != 0>...>>{};
}

/// The tape entry of Op over operands of types A, for a backward_rule.
template <class Op, class... A>
using kernel_backward_of =
    typename decltype(kernel_entry<Op, A...>(std::make_integer_sequence<int, sizeof...(A)>()))::type;

}  // namespace detail

template <class Op, class... A>
struct [[nodiscard]] kernel_expr : detail::kernel_base<Op, A...> {
  static_assert(ops::check_kernel_op<Op>());
  using base = detail::kernel_base<Op, A...>;
  using T = element_of<base>;
  using D = device_of<base>;
  using kernels = detail::kernels<typename detail::running_op<Op>::type, D>;
  static constexpr int R = base::rank;
  static constexpr int points = 1 + (detail::points_in<A> + ... + 0);
  static constexpr bool operands_read_name = (detail::reads_name<A> || ...);
  static constexpr bool reads_result = (detail::operands_read<Op>() & uses::result) != 0;
  static constexpr bool takes_epilogue = Op::takes_epilogue && (base::order == 0 || !reads_result);
  static constexpr bool by_rows = Op::by_rows, keeps_input = Op::keeps_input;
  static constexpr bool differentiable_twice = Op::differentiable_twice;
  static constexpr const char* explained_as() { return Op::name; }
  /// Does sinter::compiled hold its kernels for several sets of instructions?
  static constexpr bool has_variants = [] {
    if constexpr (requires { Op::template has_variants_of<A...>; }) return Op::template has_variants_of<A...>;
    else return requires { requires Op::has_variants; } && !narrow_element<T>;
  }();

  explicit kernel_expr(const Op& what, A... a) : op(what), operands(std::move(a)...) {
    this->shape_ = operands.apply([this](const auto&... x) { return op.shape(x.shape()...); });
  }

  bool ready_for_epilogue() const { return op.has_rows_side_by_side(this->shape_); }

  tensor<T, R, D> new_value() const {
    if constexpr (Op::keeps_order)
      return tensor<T, R, D>::uninitialized(
          this->shape_,
          detail::dense_strides_like(this->shape_, detail::to_kernel(operands.template get<0>()).strides()));
    else return tensor<T, R, D>::uninitialized(this->shape_, detail::strides_in(Op::format, this->shape_));
  }
  template <class Epilogue>
  auto compute_into(const tensor<T, R, D>& to, const Epilogue* epilogue) const {
    const detail::logged_work work("forward", detail::names_of_point<Op, Epilogue>, to.shape().data(), R);
    return operands.apply(
        [&](const auto&... a) { return kernels::forward(op, to, epilogue, detail::to_kernel(a)...); });
  }

  /// Will its value have a place in the graph?
  bool is_recorded() const {
    return detail::recording() && [&]<int... I>(std::integer_sequence<int, I...>) {
      return (bool(source<I>()) || ...);
    }(std::make_integer_sequence<int, sizeof...(A)>());
  }
  template <class Saved>
  auto record(const tensor<T, R, D>& value, const Saved& saved) const {
    if constexpr (Op::reverses_elementwise)
      return operands.apply([&](const auto& x) { return record_statement(value, detail::materialise(x)); });
    else return record(value, saved, std::make_integer_sequence<int, sizeof...(A)>());
  }

  Op op;
  detail::pack<A...> operands;

 private:
  template <class X>
  auto record_statement(const tensor<T, R, D>& value, const X& x) const {
    if (!detail::recording()) return detail::unrecorded<base::order>(value);
    auto&& formula = op.derivative_of(x, value);
    auto node = detail::make_statement(formula, detail::leaves_of<detail::bare<decltype(formula)>>(formula));
    if (!node) return detail::unrecorded<base::order>(value);
    node->name = Op::name;
    node->set_space(x.shape(), op.kept_shape(x.shape()));
    if constexpr (base::order >= 2) node->widen = &detail::widened_gradient<T, R, X::rank, D>;
    return detail::produced<base::order>(value, std::move(node));
  }
  template <class Saved, int... I>
  auto record(const tensor<T, R, D>& value, const Saved& saved, std::integer_sequence<int, I...>) const {
    if (!detail::recording()) return detail::unrecorded<base::order>(value);
    const detail::state_ptr sources[] = {source<I>()...};
    if (!(sources[I] || ...)) return detail::unrecorded<base::order>(value);
    auto node = [&] {
      using entry = detail::kernel_backward_of<Op, A...>;
      if constexpr (base::order >= 2 && Op::differentiable_twice)
        return detail::make_owned<detail::kernel_graph_backward<entry, A...>>(op, saved, operands);
      else return detail::make_owned<entry>(op, saved);
    }();
    node->name = detail::called(op);
    (node->template set_source<I>(sources[I]), ...);
    (node->template keep_operand<I>(operands.template get<I>()), ...);
    node->keep_result(value);
    return detail::produced<base::order>(value, std::move(node));
  }
  template <int I>
  detail::state_ptr source() const {
    if constexpr (detail::is_differentiable<Op>(I)) return detail::prologue_state(operands.template get<I>());
    else return {};
  }
};

namespace detail {

template <class Op, class Places, class... A>
struct kernel_type;
template <class Op, int... I, class... A>
  requires(expression<A> && ...)
struct kernel_type<Op, std::integer_sequence<int, I...>, A...> {
  using type = kernel_expr<Op, operand_of<Op, I, A>...>;
  static type make(const Op& op, A... a) { return type{op, take_operand<Op, I>(std::forward<A>(a))...}; }  // in order
};
/// The expression op(a, ...). Functions name it as what they return, so that their type is known without their body.
/// Without operands that are expressions there is none, and no error: clang 14 to 19 ask for it before they check the
/// constraints of a function, as of one with a bias where options are passed.
template <class Op, class... A>
using kernel_of = typename kernel_type<Op, std::make_integer_sequence<int, sizeof...(A)>, A...>::type;

/// op(a, ...). Operands fit; their extents are checked here.
template <class Op, class... A>
kernel_of<Op, A...> make_kernel(const Op& op, A&&... a) {
  return kernel_type<Op, std::make_integer_sequence<int, sizeof...(A)>, A&&...>::make(op, std::forward<A>(a)...);
}

}  // namespace detail
}  // namespace sinter
