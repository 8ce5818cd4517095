// sinter/core/members.hpp: functions of tensors as members: x.sum(1) is sum(x, 1).
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "sinter/core/concepts.hpp"
#include "sinter/core/device.hpp"
#include "sinter/core/half.hpp"
#include "sinter/core/number.hpp"
#include "sinter/core/shape.hpp"

namespace sinter {

template <class>
struct third_argument_that_is_not_keepdim_but;
struct write_keepdim_or_list_the_axes_in_braces;
struct write_dot_correction_0_in_braces_or_keepdim;
struct write_dot_correction_0_or_1;

/// What the sum of squares is divided by in var, stddev, var_mean, std_mean and cov: the number of values less
/// `correction`, or 0 if that is below 0.
///
///     var(x, 1, {.correction = 0});
struct var_options {
  double correction = 1;
  [[no_unique_address]] detail::option_named_otherwise<write_dot_correction_0_or_1> unbiased = {};
};

/// How sort() and argsort() order, by PyTorch's names.
///
///     auto [values, places] = sort(x, {.dim = 0, .descending = true});
struct sort_options {
  [[no_unique_address]] detail::only_by_name first = {};
  index_t dim = -1;
  bool descending = false;
  bool stable = true;  ///< every sort is: both are the same
};
/// The same where the axis stands before: `sort(x, 0, {.descending = true})`.
struct sort_order {
  [[no_unique_address]] detail::only_by_name first = {};
  bool descending = false;
  bool stable = true;  ///< every sort is: both are the same
};
/// What topk() takes, by PyTorch's names: `topk(x, 2, {.dim = 0, .largest = false})`.
struct topk_options {
  [[no_unique_address]] detail::only_by_name first = {};
  index_t dim = -1;
  bool largest = true;
  bool sorted = true;  ///< topk() always sorts: both are the same
};
/// The same where the axis stands before: `topk(x, 2, 0, {.largest = false})`.
struct topk_order {
  [[no_unique_address]] detail::only_by_name first = {};
  bool largest = true;
  bool sorted = true;  ///< topk() always sorts: both are the same
};
/// The places behind the point that round() keeps: `round(x, {.decimals = 2})`.
struct round_options {
  [[no_unique_address]] detail::only_by_name first = {};
  index_t decimals = 0;
};
/// How long the result of bincount() is at least: `bincount(labels, {.minlength = 10})`.
struct bincount_options {
  [[no_unique_address]] detail::only_by_name first = {};
  index_t minlength = 0;
};
/// The factors of addmm() and its like, of the operand that is added and of the product: `{.beta = 0, .alpha = 2}`.
struct product_options {
  [[no_unique_address]] detail::only_by_name first = {};
  double beta = 1, alpha = 1;
};

namespace detail {

// Functions of x alone, of x and one more argument, and of any further arguments; reductions also take a list of axes.
// Members are declared anew for each type of expression: one of any arguments takes g++ 3.0 kB, one of none 1.2 kB. A
// function whose axis is easily forgotten stands with those of any arguments: its own message names the axis.
// clang-format off
#define SINTER_MEMBERS_OF_NOTHING_ELSE(M) \
  M(abs) M(acos) M(asin) M(atan) M(ceil) M(cos) M(cosh) M(erf) M(exp) M(exp2) M(expm1) M(floor) M(frac) M(isfinite) \
  M(isinf) M(isnan) M(log) M(log10) M(log1p) M(log2) M(logical_not) M(neg) M(reciprocal) M(relu) M(rsqrt) M(sigmoid) \
  M(sign) M(silu) M(sin) M(sinc) M(sinh) M(sqrt) M(square) M(tan) M(tanh) M(trunc) M(absolute) M(acosh) M(arccos) \
  M(arcsin) M(arctan) M(asinh) M(atanh) M(deg2rad) M(erfc) M(fliplr) M(flipud) M(isneginf) M(isposinf) M(negative) \
  M(rad2deg) M(signbit) M(nonzero) M(argwhere) M(trace) M(corrcoef)
#define SINTER_MEMBERS_OF_ONE_MORE(M) \
  M(add) M(bmm) M(copysign) M(divide) M(dot) M(eq) M(equal) M(float_power) M(floor_divide) M(fmax) M(fmin) M(fmod) \
  M(ge) M(gt) M(hypot) M(inner) M(kron) M(le) M(logaddexp) M(logaddexp2) M(logical_and) M(logical_or) M(logical_xor) \
  M(lt) M(matmul) M(maximum) M(minimum) M(mm) M(mul) M(multiply) M(mv) M(ne) M(outer) M(pow) M(prelu) M(remainder) \
  M(sub) M(subtract) M(take) M(true_divide) M(xlogy) M(atan2)
#define SINTER_MEMBERS(M) \
  M(addcdiv) M(addcmul) M(addmm) M(allclose) M(aminmax) M(argsort) M(baddbmm) M(bincount) M(chunk) M(clamp) \
  M(clamp_max) M(clamp_min) M(clip) M(cumprod) M(cumsum) M(diag) M(diag_embed) M(diff) M(div) M(gather) M(histc) \
  M(index_add) M(index_copy) M(index_fill) M(index_select) M(isclose) M(kthvalue) M(lerp) M(masked_fill) \
  M(masked_scatter) M(masked_select) M(median) M(movedim) M(nan_to_num) M(quantile) M(repeat_interleave) M(roll) \
  M(round) M(scatter) M(scatter_add) M(sort) M(split) M(tensor_split) M(topk) M(tril) M(triu) M(unbind) M(unique) \
  M(addmv) M(cov) M(cross) M(diagflat) M(dist) M(logit) M(mode) M(multinomial) M(nanmedian) M(nanquantile) M(rot90) \
  M(scatter_reduce) M(select_scatter) M(slice_scatter) M(take_along_dim) M(softmax) M(log_softmax) M(cummax) \
  M(cummin) M(logcumsumexp)
#define SINTER_MEMBERS_OF_AXES(M) \
  M(all) M(amax) M(amin) M(any) M(argmax) M(argmin) M(count_nonzero) M(logsumexp) M(max) M(mean) M(min) M(nanmean) \
  M(nansum) M(norm) M(prod) M(sum)
// Those that have a member with an underscore, which writes the result into the tensor.
#define SINTER_MEMBERS_IN_PLACE_OF_NOTHING_ELSE(M) \
  M(abs) M(ceil) M(cos) M(exp) M(exp2) M(expm1) M(floor) M(frac) M(log) M(log10) M(log1p) M(log2) M(neg) \
  M(reciprocal) M(relu) M(rsqrt) M(sigmoid) M(sign) M(sin) M(sqrt) M(square) M(tan) M(tanh) M(trunc)
#define SINTER_MEMBERS_IN_PLACE(M) \
  M(addcdiv) M(addcmul) M(clamp) M(clamp_max) M(clamp_min) M(clip) M(cumprod) M(cumsum) M(fmod) M(index_add) \
  M(index_copy) M(index_fill) M(lerp) M(masked_fill) M(masked_scatter) M(nan_to_num) M(pow) M(remainder) M(round) \
  M(scatter) M(scatter_add) M(tril) M(triu)
// clang-format on

// The function of that name that belongs to the operands, which a class with a member of that name does not see.
namespace free_function {
#define SINTER_CALLED(name)             \
  template <class... A>                 \
  auto call_##name(A&&... a) {          \
    return name(std::forward<A>(a)...); \
  }
SINTER_MEMBERS_OF_NOTHING_ELSE(SINTER_CALLED)
SINTER_MEMBERS_OF_ONE_MORE(SINTER_CALLED)
SINTER_MEMBERS(SINTER_CALLED)
SINTER_MEMBERS_OF_AXES(SINTER_CALLED)
SINTER_CALLED(var)
SINTER_CALLED(stddev)
SINTER_CALLED(repeat)
SINTER_CALLED(tile)
SINTER_CALLED(unflatten)
#undef SINTER_CALLED
template <class To, class X>
auto call_cast(const X& x) {
  return cast<To>(x);
}
}  // namespace free_function

template <class First, class...>
struct first_type {
  using type = First;
};
template <class... T>
using first_of = typename first_type<T...>::type;

/// The members that tensors, variables and expressions share; Self is one of them.
template <class Self>
struct members {
#define SINTER_MEMBER(name)                                                      \
  template <class... A>                                                          \
  [[nodiscard]] auto name(A&&... a) const {                                      \
    return free_function::call_##name(self_of_members(), std::forward<A>(a)...); \
  }
#define SINTER_MEMBER_OF_NOTHING_ELSE(name) \
  [[nodiscard]] auto name() const { return free_function::call_##name(self_of_members()); }
#define SINTER_MEMBER_OF_ONE_MORE(name)                                       \
  template <class A>                                                          \
  [[nodiscard]] auto name(A&& a) const {                                      \
    return free_function::call_##name(self_of_members(), std::forward<A>(a)); \
  }
#define SINTER_MEMBER_OF_LIST(name)                                                    \
  template <std::size_t N, class... A>                                                 \
  [[nodiscard]] auto name(const index_t(&list)[N], A&&... a) const {                   \
    return free_function::call_##name(self_of_members(), list, std::forward<A>(a)...); \
  }
// Behind the name may stand what to write in place of true or false.
#define SINTER_MEMBER_OF_AXES(name, ...)                                                                       \
  SINTER_MEMBER(name)                                                                                          \
  SINTER_MEMBER_OF_LIST(name)                                                                                  \
  template <class Axis, std::same_as<bool> Keep, class Problem = third_argument_that_is_not_keepdim_but<Keep>, \
            class Fix = first_of<__VA_ARGS__ __VA_OPT__(, ) write_keepdim_or_list_the_axes_in_braces>>         \
  void name(Axis, Keep) const = delete;                                                                        \
  template <class Problem = option_of_another_name, class Fix = write_keepdim_without_braces>                  \
  void name(whole, const keepdim_in_braces&) const = delete;
  SINTER_MEMBERS_OF_NOTHING_ELSE(SINTER_MEMBER_OF_NOTHING_ELSE)
  SINTER_MEMBERS_OF_ONE_MORE(SINTER_MEMBER_OF_ONE_MORE)
  SINTER_MEMBERS(SINTER_MEMBER)
  SINTER_MEMBERS_OF_AXES(SINTER_MEMBER_OF_AXES)
  SINTER_MEMBER_OF_AXES(var, write_dot_correction_0_in_braces_or_keepdim)
  SINTER_MEMBER_OF_AXES(stddev, write_dot_correction_0_in_braces_or_keepdim)
// Options in braces, which the members above do not deduce: alone, and behind an axis or a count.
#define SINTER_MEMBER_WITH_OPTIONS(name, function, options) \
  [[nodiscard]] auto name(const options& o) const { return free_function::call_##function(self_of_members(), o); }
#define SINTER_MEMBER_WITH_OPTIONS_BEHIND(name, function, options)       \
  [[nodiscard]] auto name(whole n, const options& o) const {             \
    const index_t number = n;                                            \
    return free_function::call_##function(self_of_members(), number, o); \
  }
#define SINTER_MEMBER_WITH_FACTORS(name)                                                             \
  template <class A, class B>                                                                        \
  [[nodiscard]] auto name(A&& a, B&& b, const product_options& o) const {                            \
    return free_function::call_##name(self_of_members(), std::forward<A>(a), std::forward<B>(b), o); \
  }
  SINTER_MEMBER_WITH_OPTIONS(var, var, var_options)
  SINTER_MEMBER_WITH_OPTIONS_BEHIND(var, var, var_options)
  SINTER_MEMBER_WITH_OPTIONS(stddev, stddev, var_options)
  SINTER_MEMBER_WITH_OPTIONS_BEHIND(stddev, stddev, var_options)
  SINTER_MEMBER_WITH_OPTIONS(std, stddev, var_options)
  SINTER_MEMBER_WITH_OPTIONS_BEHIND(std, stddev, var_options)
  SINTER_MEMBER_WITH_OPTIONS(sort, sort, sort_options)
  SINTER_MEMBER_WITH_OPTIONS_BEHIND(sort, sort, sort_order)
  SINTER_MEMBER_WITH_OPTIONS(argsort, argsort, sort_options)
  SINTER_MEMBER_WITH_OPTIONS_BEHIND(argsort, argsort, sort_order)
  SINTER_MEMBER_WITH_OPTIONS_BEHIND(topk, topk, topk_options)
  [[nodiscard]] auto topk(whole k, whole axis, const topk_order& o) const { return topk(k, axis, o.largest); }
  SINTER_MEMBER_WITH_OPTIONS(bincount, bincount, bincount_options)
  SINTER_MEMBER_WITH_OPTIONS(round, round, round_options)
  SINTER_MEMBER_WITH_FACTORS(addmm)
  SINTER_MEMBER_WITH_FACTORS(baddbmm)
  SINTER_MEMBER_WITH_FACTORS(addmv)
#undef SINTER_MEMBER_WITH_OPTIONS
#undef SINTER_MEMBER_WITH_OPTIONS_BEHIND
#undef SINTER_MEMBER_WITH_FACTORS
  SINTER_MEMBER_OF_LIST(repeat)
  SINTER_MEMBER_OF_LIST(tile)
#undef SINTER_MEMBER
#undef SINTER_MEMBER_OF_NOTHING_ELSE
#undef SINTER_MEMBER_OF_ONE_MORE
#undef SINTER_MEMBER_OF_LIST
#undef SINTER_MEMBER_OF_AXES
  /// PyTorch's name of stddev().
  template <class... A>
  [[nodiscard]] auto std(A&&... a) const {
    return free_function::call_stddev(self_of_members(), std::forward<A>(a)...);
  }
  template <std::size_t N, class... A>
  [[nodiscard]] auto std(const index_t (&axes)[N], A&&... a) const {
    return free_function::call_stddev(self_of_members(), axes, std::forward<A>(a)...);
  }

  /// split(x, sizes, axis).
  template <std::size_t N>
  [[nodiscard]] auto split(const index_t (&sizes)[N], whole axis = 0) const {
    return free_function::call_split(self_of_members(), sizes, axis);
  }

  /// unflatten(x, axis, sizes).
  template <std::size_t N>
  [[nodiscard]] auto unflatten(whole axis, const index_t (&sizes)[N]) const {
    return free_function::call_unflatten(self_of_members(), axis, sizes);
  }
  template <class To>
  [[nodiscard]] auto cast() const {
    return free_function::call_cast<To>(self_of_members());
  }

  // PyTorch's names of members. `view` copies where no view shows the shape, as reshape does.
  auto size() const { return self_of_members().shape(); }
  index_t size(whole axis) const { return size()[checked_axis("size", axis, Self::rank)]; }
  static constexpr int dim() { return Self::rank; }
  static constexpr int ndim() { return Self::rank; }
  static constexpr int ndimension() { return Self::rank; }
  index_t nelement() const { return size().numel(); }
  static const char* dtype() { return element_name<typename Self::value_type>(); }
  static std::string device() { return device_name<typename Self::device_type>(); }
  /// The last two axes exchanged; of fewer axes x itself, as in PyTorch.
  [[nodiscard]] auto t() const {
    if constexpr (Self::rank < 2) return self_of_members();
    else return self_of_members().transpose();
  }
  [[nodiscard]] auto T() const { return t(); }
  template <class N>
  N item() const {
    return static_cast<N>(self_of_members().item());
  }
  /// to<To>().
  template <sinter::device To>
  [[nodiscard]] auto to(To) const {
    return self_of_members().template to<To>();
  }
  /// Of the element type of `like`, and on its device.
  template <class E>
    requires(!sinter::device<E> && requires { typename E::device_type; })
  [[nodiscard]] auto to(const E&) const {
    if constexpr (std::is_same_v<typename Self::device_type, typename E::device_type>)
      return this->template cast<typename E::value_type>();
    else return eval_to_read(this->template cast<typename E::value_type>()).template to<typename E::device_type>();
  }
  template <class Problem = device_or_element_type_that_is_text,
            class Fix = write_it_in_angle_brackets_as_in_to_cpu_or_to_float>
  void to(const char*) const = delete;
  [[nodiscard]] auto swapaxes(whole a, whole b) const { return self_of_members().transpose(a, b); }
  static constexpr index_t element_size() { return static_cast<index_t>(sizeof(typename Self::value_type)); }
  index_t nbytes() const { return size().numel() * element_size(); }
  static constexpr bool is_cuda() { return is_cuda_v<typename Self::device_type>; }
  /// cast<To>() of it.
  template <class To>
  [[nodiscard]] auto type() const {
    return this->template cast<To>();
  }
  template <class To>
  [[nodiscard]] auto astype() const {
    return this->template cast<To>();
  }
  [[nodiscard]] auto mT() const {
    static_assert(Self::rank >= 2, "sinter: mT() exchanges the last two axes, and this has fewer");
    return t();
  }
  template <std::size_t N>
  [[nodiscard]] auto view(const index_t (&shape)[N]) const {
    return self_of_members().reshape(shape);
  }
  /// broadcast_to(shape), in which -1 stands for the extent that is there.
  template <std::size_t N>
  [[nodiscard]] auto expand(const index_t (&shape)[N]) const {
    constexpr int added = int{N} - Self::rank;
    extents<int{N}> to = to_extents(shape);
    for (int d = added > 0 ? added : 0; d < int{N}; ++d)
      if (to[d] == -1) to[d] = size()[d - added];
    return self_of_members().broadcast_to(to);
  }
  template <class E>
  [[nodiscard]] auto expand_as(const E& e) const {
    return self_of_members().broadcast_to(e.shape());
  }
  template <class E>
  [[nodiscard]] auto reshape_as(const E& e) const {
    return self_of_members().reshape(e.shape());
  }
  template <class E>
  [[nodiscard]] auto view_as(const E& e) const {
    return self_of_members().reshape(e.shape());
  }
  /// `length` elements of an axis, from `begin` on.
  [[nodiscard]] auto narrow(whole axis, whole begin, whole length) const {
    const index_t first = begin + (begin < 0 ? size(axis) : 0);
    return self_of_members().slice(axis, first, first + length);
  }

  [[nodiscard]] auto ravel() const { return self_of_members().reshape({-1}); }
  [[nodiscard]] auto moveaxis(whole from, whole to) const { return this->movedim(from, to); }
  [[nodiscard]] auto swapdims(whole a, whole b) const { return self_of_members().transpose(a, b); }
  [[nodiscard]] auto cpu() const { return self_of_members().template to<sinter::cpu>(); }
  [[nodiscard]] auto half() const { return this->template cast<sinter::half>(); }
  template <class E>
  [[nodiscard]] auto type_as(const E&) const {
    return this->template cast<typename E::value_type>();
  }
  static constexpr bool is_floating_point() { return floating_element<typename Self::value_type>; }

  // Forms in braces.
  template <std::size_t N, class Problem = indices_in_braces, class Fix = write_a_tensor_of_indices>
  void index_select(whole, const index_t (&)[N]) const = delete;

  // What has its braces forgotten, and what has a rank that depends on numbers.
  template <std::integral... I, class Problem = extents_that_are_not_in_braces, class Fix = write_them_in_braces>
  void view(I...) const = delete;
  template <std::integral... I, class Problem = extents_that_are_not_in_braces, class Fix = write_them_in_braces>
  void expand(I...) const = delete;

  template <class E, class N, class Problem = factor_of_an_operand, class Fix = multiply_the_operand_by_it>
  void add(E&&, N&&) const = delete;
  template <class E, class N, class Problem = factor_of_an_operand, class Fix = multiply_the_operand_by_it>
  void sub(E&&, N&&) const = delete;
  template <class E, class Problem = factor_of_an_operand, class Fix = multiply_the_operand_by_it>
  void add(E&&, const factor_in_braces&) const = delete;
  template <class E, class Problem = factor_of_an_operand, class Fix = multiply_the_operand_by_it>
  void sub(E&&, const factor_in_braces&) const = delete;

  // PyTorch's and NumPy's names of what goes by another one.
  SINTER_MEMBER_NAMED_OTHERWISE(tolist, write_span_or_a_loop_from_begin_to_end)
  SINTER_MEMBER_NAMED_OTHERWISE(to_vector, write_span_or_a_loop_from_begin_to_end)
  SINTER_MEMBER_NAMED_OTHERWISE(numpy, write_span_or_a_loop_from_begin_to_end)
  SINTER_MEMBER_NAMED_OTHERWISE(data_ptr, write_span_or_a_loop_from_begin_to_end)
  SINTER_MEMBER_NAMED_OTHERWISE(to_string, print_it_to_an_ostream)
  SINTER_MEMBER_NAMED_OTHERWISE(where, write_where_of_mask_a_and_b)
  SINTER_MEMBER_NAMED_OTHERWISE(inverse, call_it_as_a_function_of_sinter_linalg_hpp)
  SINTER_MEMBER_NAMED_OTHERWISE(det, call_it_as_a_function_of_sinter_linalg_hpp)
  SINTER_MEMBER_OF_LIST_NAMED_OTHERWISE(new_zeros, write_zeros_ones_or_full_with_a_shape)
  SINTER_MEMBER_OF_LIST_NAMED_OTHERWISE(new_ones, write_zeros_ones_or_full_with_a_shape)
  SINTER_MEMBER_OF_LIST_NAMED_OTHERWISE(new_full, write_zeros_ones_or_full_with_a_shape)
  SINTER_MEMBER_NAMED_OTHERWISE(t_, make_another_tensor_as_the_type_has_the_rank)
  SINTER_MEMBER_NAMED_OTHERWISE(transpose_, make_another_tensor_as_the_type_has_the_rank)
  SINTER_MEMBER_NAMED_OTHERWISE(squeeze_, make_another_tensor_as_the_type_has_the_rank)
  SINTER_MEMBER_NAMED_OTHERWISE(unsqueeze_, make_another_tensor_as_the_type_has_the_rank)
  SINTER_MEMBER_NAMED_OTHERWISE(resize_, make_another_tensor_as_the_type_has_the_rank)
  SINTER_MEMBER_NAMED_OTHERWISE(normal_, write_copy_of_uniform_or_normal_with_a_generator)
  SINTER_MEMBER_NAMED_OTHERWISE(uniform_, write_copy_of_uniform_or_normal_with_a_generator)
  SINTER_MEMBER_NAMED_OTHERWISE(random_, write_copy_of_uniform_or_normal_with_a_generator)
  SINTER_MEMBER_NAMED_OTHERWISE(requires_grad_, make_a_variable_of_it)
  SINTER_MEMBER_NAMED_OTHERWISE(to_list, write_span_or_a_loop_from_begin_to_end)
  SINTER_MEMBER_NAMED_OTHERWISE(at, write_an_index_for_each_axis_in_round_brackets)
  SINTER_MEMBER_NAMED_OTHERWISE(row, write_an_index_in_square_brackets_or_select)
  SINTER_MEMBER_NAMED_OTHERWISE(col, write_an_index_in_square_brackets_or_select)
  SINTER_MEMBER_OF_LIST_NAMED_OTHERWISE(index, write_x_of_i_or_slice_or_index_select)
  SINTER_MEMBER_OF_LIST_NAMED_OTHERWISE(index_put_, call_the_function_index_put)
  SINTER_MEMBER_NAMED_OTHERWISE(apply, write_a_formula_or_a_loop_from_begin_to_end)
  SINTER_MEMBER_NAMED_OTHERWISE(apply_, write_a_formula_or_a_loop_from_begin_to_end)
  SINTER_MEMBER_NAMED_OTHERWISE(cuda, write_to_cuda_0_in_angle_brackets)
  template <class N, int R, class Problem = name_of_pytorch_or_numpy,
            class Fix = write_an_index_for_each_axis_in_round_brackets>
  void accessor() const = delete;

 private:
  const Self& self_of_members() const { return static_cast<const Self&>(*this); }
};
#undef SINTER_MEMBERS
#undef SINTER_MEMBERS_OF_NOTHING_ELSE
#undef SINTER_MEMBERS_OF_ONE_MORE
#undef SINTER_MEMBERS_OF_AXES

/// Those of tensors beside, which write into the storage: every view sees it.
template <class Self>
struct members_of_tensors : members<Self> {
  template <class Value>
  const Self& fill_(const Value& value) const {
    target() = value;
    return self_of_tensor();
  }
  const Self& zero_() const { return fill_(0); }
  template <class E>
  const Self& copy_(const E& e) const {
    return fill_(e);
  }
#define SINTER_MEMBER_IN_PLACE(name)                                                   \
  template <class... A>                                                                \
  const Self& name##_(A&&... a) const {                                                \
    return fill_(free_function::call_##name(self_of_tensor(), std::forward<A>(a)...)); \
  }
#define SINTER_MEMBER_IN_PLACE_OF_NOTHING_ELSE(name) \
  const Self& name##_() const { return fill_(free_function::call_##name(self_of_tensor())); }
  SINTER_MEMBERS_IN_PLACE(SINTER_MEMBER_IN_PLACE)
  SINTER_MEMBERS_IN_PLACE_OF_NOTHING_ELSE(SINTER_MEMBER_IN_PLACE_OF_NOTHING_ELSE)
#undef SINTER_MEMBER_IN_PLACE
#undef SINTER_MEMBER_IN_PLACE_OF_NOTHING_ELSE
  auto* data_ptr() const { return self_of_tensor().data(); }
  template <class N>
  N* data_ptr() const {
    return self_of_tensor().data();
  }
  /// It is recorded nowhere: this tensor.
  [[nodiscard]] Self detach() const { return self_of_tensor(); }
#define SINTER_UPDATE(name, op)                                                                             \
  template <class E>                                                                                        \
  const Self& name(const E& e) const {                                                                      \
    target() op e;                                                                                          \
    return self_of_tensor();                                                                                \
  }                                                                                                         \
  template <class E, class N, class Problem = factor_of_an_operand, class Fix = multiply_the_operand_by_it> \
  void name(const E&, const N&) const = delete;                                                             \
  template <class E, class Problem = factor_of_an_operand, class Fix = multiply_the_operand_by_it>          \
  void name(const E&, const factor_in_braces&) const = delete;
  SINTER_UPDATE(add_, +=)
  SINTER_UPDATE(sub_, -=)
  SINTER_UPDATE(mul_, *=)
  SINTER_UPDATE(div_, /=)
#undef SINTER_UPDATE

 private:
  const Self& self_of_tensor() const { return static_cast<const Self&>(*this); }
  auto target() const { return self_of_tensor().in_place(); }
};

}  // namespace detail
}  // namespace sinter
