// sinter/core/tensor.hpp: the tensor, a reference-counted handle to device memory with a static rank and device.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "sinter/core/capture.hpp"
#include "sinter/core/concepts.hpp"
#include "sinter/core/members.hpp"
#include "sinter/core/memory_format.hpp"
#include "sinter/core/number.hpp"
#include "sinter/core/storage.hpp"
#include "sinter/core/swap.hpp"
#include "sinter/core/unfinished.hpp"
#include "sinter/core/view.hpp"

namespace sinter {

namespace detail {

template <class T, int R>
struct nested_list {
  using type = std::initializer_list<typename nested_list<T, R - 1>::type>;
};
template <class T>
struct nested_list<T, 0> {
  using type = T;
};

struct no_list {};
struct no_type {};

inline constexpr int max_list_rank = 4;
template <class T, int R, class D>
inline constexpr bool has_list = R >= 1 && R <= max_list_rank && is_cpu_v<D>;
template <class T, int R, class D>
using list_of =
    std::conditional_t<has_list<T, R, D>, typename nested_list<T, has_list<T, R, D> ? R : 1>::type, no_list>;

/// Sets the extents of a nested list from its first elements, and checks all others against them.
template <int R, class List>
void measure_list(const List& list, index_t* extent, bool first = true) {
  const auto n = static_cast<index_t>(list.size());
  if (first) *extent = n;
  if (n != *extent) refuse<shape_error>({"tensor: the rows of a list differ in length: ", *extent, " and ", n});
  if constexpr (R > 1)
    for (const auto& row : list) measure_list<R - 1>(row, extent + 1, first && &row == list.begin());
}

template <int R, class T, class List>
T* copy_list(const List& list, T* to) {
  const auto* const from = as_written(list.begin());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if constexpr (R > 1) to = copy_list<R - 1>(from[i], to);
    else *to++ = from[i];
  }
  return to;
}

/// The one entry through which a tensor is made from, or written by, an expression; defined in expr/evaluate.hpp.
template <class E>
struct evaluation;

}  // namespace detail

/// A handle to T elements of rank Shape on device D. Copies of a tensor and views of it share storage.
///
///     tensor<float, 2> a = zeros<float>({128, 784});
///     tensor b = relu(a * 2.f);         // one pass over memory
///     b.slice(0, 0, 64) = a.slice(0, 64, 128);
///
/// `b = expression` gives b a new value and leaves other handles alone; `b += expression` and assignment through a
/// view (`b.slice(...) = expression`) write into the shared storage.
///
/// `const` is shallow, as for std::span and std::shared_ptr: a const tensor keeps its handle, and is no left side of
/// `=` and
/// `+=`, but its elements can be written through views and x(i). Classes hold tensors as members; they do not derive
/// from one.
template <class T, auto Shape, device D>
class tensor final : public detail::members_of_tensors<tensor<T, Shape, D>> {
  static_assert(!std::is_same_v<T, detail::no_type>,
                "sinter: `tensor t;` says neither element type nor rank; write tensor<float, 2> t");
  static_assert(element<T> || std::is_same_v<T, detail::no_type>,
                "sinter: the element type is not one of float, double, half, bfloat16, int8..int64, uint8, bool");
  static_assert(std::is_same_v<std::remove_const_t<decltype(Shape)>, int>,
                "sinter: the shape parameter of tensor is its rank, an int");
  static_assert(Shape >= 0 && Shape <= max_rank, "sinter: a tensor has rank 0 to 8");

 public:
  using value_type = T;
  using device_type = D;
  static constexpr int rank = static_cast<int>(Shape);
  static constexpr bool is_expression = true;
  static constexpr int order = 0;
  using shape_type = extents<rank>;
  using list_type = detail::list_of<T, rank, D>;
  using detail::members<tensor>::item, detail::members<tensor>::to;

  tensor() = default;
  tensor(const tensor&) = default;
  tensor(tensor&&) noexcept = default;
  ~tensor() { detail::assignment_target::end_of(this); }

  /// The handle shows other's elements from now on.
  tensor& operator=(const tensor& other) & = default;
  tensor& operator=(tensor&& other) & noexcept = default;

  /// Evaluates an expression of the same element type, rank and device.
  template <expression E>
    requires(!detail::is_tensor<detail::bare<E>> && detail::converts<E, T, rank, D>)
  tensor(E&& e)  // NOLINT: implicit on purpose
      : tensor(detail::evaluation<detail::bare<E>>::run(e, !std::is_lvalue_reference_v<E>)) {}

  /// What does not fit is rejected, with the reason as Problem and the way out as Fix.
  template <class E, class Problem = typename detail::conversion_mistake<detail::assigned<E>, T, rank, D>::problem,
            class Fix = typename detail::conversion_mistake<detail::assigned<E>, T, rank, D>::fix>
  tensor(E&&) = delete;

  /// A number has no shape.
  template <class N, class Problem = number_given_to_a_handle_which_has_no_shape_of_its_own,
            class Fix = write_full_of_a_shape_and_the_number>
    requires(std::is_arithmetic_v<N>)
  explicit tensor(N) = delete;
  template <std::integral... I, class Problem = extents_in_parentheses,
            class Fix = write_zeros_ones_or_empty_with_them_in_braces>
    requires(sizeof...(I) > 1)
  explicit tensor(I...) = delete;

  /// Host tensors of rank 1 to 4 from a list of values: `tensor<float, 2>{{1, 2}, {3, 4}}`.
  tensor(list_type values)
    requires(detail::has_list<T, rank, D>)
  {
    shape_type shape{};
    detail::measure_list<rank>(values, shape.values);
    *this = uninitialized(shape);
    detail::copy_list<rank>(values, data_);
  }

  /// The elements of a vector, copied.
  explicit tensor(const std::vector<T>& values)
    requires(rank == 1 && std::is_same_v<decltype(Shape), int> && is_cpu_v<D>)
      : tensor(uninitialized({{static_cast<index_t>(values.size())}})) {
    std::copy(values.begin(), values.end(), data_);
  }

  template <std::size_t N>
    requires(rank == 1 && std::is_same_v<decltype(Shape), int> && is_cpu_v<D>)
  explicit tensor(const std::array<T, N>& values) : tensor(uninitialized({{index_t{N}}})) {
    std::copy(values.begin(), values.end(), data_);
  }

  /// Rows of equal length, copied. Errors: shape_error where they differ.
  explicit tensor(const std::vector<std::vector<T>>& rows)
    requires(rank == 2 && std::is_same_v<decltype(Shape), int> && is_cpu_v<D>)
      : tensor(uninitialized(
            {{static_cast<index_t>(rows.size()), rows.empty() ? 0 : static_cast<index_t>(rows.front().size())}})) {
    T* to = data_;
    for (const std::vector<T>& row : rows) {
      if (static_cast<index_t>(row.size()) != shape_[1])
        detail::refuse<shape_error>({"tensor: a row of ", static_cast<index_t>(row.size()), " elements after rows of ",
                                     shape_[1], "; all rows have one length"});
      to = std::copy(row.begin(), row.end(), to);
    }
  }

  /// Memory for `shape`, not initialised.
  static tensor uninitialized(const shape_type& shape) {
    static_cast<void>(sizeof(detail::runs_in_this_file<D>));
    tensor t;
    t.shape_ = shape;
    t.storage_ = detail::allocate_dense<D>(shape.data(), rank, sizeof(T), t.strides_.values);
    t.data_ = static_cast<T*>(t.storage_->data);
    return t;
  }

  /// The same with dense strides in any order of the axes, as detail::dense_strides_like() and strides_in() make them.
  static tensor uninitialized(const shape_type& shape, const shape_type& strides) {
    tensor t = uninitialized(shape);
    t.strides_ = strides;
    return t;
  }

  // Assignment of expressions; each runs at the end of its statement, so that fuse() may merge several into one pass.
  // What does not fit meets the deleted conversions above.
  template <expression E>
    requires(!detail::is_tensor<detail::bare<E>> && detail::writes_to<E, T, rank, D> && rank_of<E> == rank)
  assignment<tensor&, detail::bare<E>> operator=(E&& e) & {
    return {*this, std::forward<E>(e)};
  }
  template <expression E>
    requires(detail::writes_to<E, T, rank, D>)
  assignment<tensor, detail::bare<E>> operator=(E&& e) && {
    return {*this, std::forward<E>(e)};
  }
  assignment<tensor, tensor> operator=(const tensor& other) && { return {*this, other}; }
  /// `y = x = e`: y shows what x shows.
  template <class Target, class E>
    requires(detail::converts<detail::bare<Target>, T, rank, D>)
  tensor& operator=(assignment<Target, E>&& a) & {
    return *this = tensor(std::move(a));
  }
  /// Errors: value_error for a number that T does not hold.
  template <literal L>
    requires(detail::literal_fits<L, T>)
  assignment<tensor, constant_expr<T>> operator=(L value) && {
    return {*this, constant_expr<T>{T(detail::number<T>(value))}};
  }
  template <literal L, class Problem = floating_literal_with_elements_of_type<T>,
            class Fix = write_an_integer_literal_or_cast_the_tensor>
    requires(!detail::literal_fits<L, T>)
  void operator=(L) && = delete;
  template <literal L, class Problem = number_given_to_a_handle_which_has_no_shape_of_its_own,
            class Fix = write_x_dot_in_place_equals_number_or_full>
  void operator=(L) & = delete;

  /// This tensor as a view, so that `x.in_place() = e` writes into its storage instead of giving the handle a new
  /// value.
  [[nodiscard]] tensor in_place() const { return *this; }

  bool defined() const noexcept { return static_cast<bool>(storage_); }
  const shape_type& shape() const noexcept { return shape_; }
  template <std::integral I, class Problem = shape_with_an_axis, class Fix = write_size_of_the_axis>
  void shape(I) const = delete;
  const shape_type& strides() const noexcept { return strides_; }  ///< in elements
  index_t extent(detail::whole axis) const { return shape_[detail::checked_axis("extent", axis, rank)]; }
  index_t numel() const noexcept { return defined() ? shape_.numel() : 0; }
  bool is_contiguous() const noexcept { return detail::is_row_major(shape_.data(), strides_.data(), rank); }
  /// Do the elements lie densely in this format? Axes of extent 1 do not count.
  bool is_contiguous(memory_format f) const noexcept;
  /// Do the elements fill memory without gaps, in any order of the axes?
  bool is_dense() const noexcept;

  // Host access; none of it exists for GPU memory.
  T* data() const noexcept
    requires is_cpu_v<D>
  {
    return data_;
  }
  template <class Problem = no_host_access_to_memory_of<D>, class Fix = copy_to_the_host_with_dot_to_cpu>
    requires(!is_cpu_v<D>)
  T* data() const = delete;

  /// Element at the given indices, bounds-checked; negative indices count from the end.
  template <std::integral... I>
    requires(detail::is_fitting<detail::access_mistake<D, sizeof...(I), rank>>)
  T& operator()(I... i) const {
    const index_t index[std::size_t{rank + 1}] = {static_cast<index_t>(i)...};
    index_t offset = 0;
    require_value("element access");
    for (int a = 0; a < rank; ++a) {
      if (index[a] < -shape_[a] || index[a] >= shape_[a])
        detail::refuse<index_error>(
            {"element access: index ", index[a], " is out of range for axis ", a, " of shape ", shape_});
      offset += (index[a] < 0 ? index[a] + shape_[a] : index[a]) * strides_[a];
    }
    return data_[offset];
  }
  template <std::integral... I, class Problem = typename detail::access_mistake<D, sizeof...(I), rank>::problem,
            class Fix = typename detail::access_mistake<D, sizeof...(I), rank>::fix>
  T& operator()(I...) const = delete;

  /// The elements of a contiguous host tensor.
  std::span<T> span() const
    requires is_cpu_v<D>
  {
    if (!is_contiguous())
      detail::refuse<shape_error>({"span: the elements do not lie in row-major order; call contiguous() first"});
    return {data_, static_cast<std::size_t>(numel())};
  }
  T* begin() const
    requires is_cpu_v<D>
  {
    return span().data();
  }
  T* end() const
    requires is_cpu_v<D>
  {
    return span().data() + numel();
  }

  template <class Problem = no_host_access_to_memory_of<D>, class Fix = copy_to_the_host_with_dot_to_cpu>
    requires(!is_cpu_v<D>)
  std::span<T> span() const = delete;
  template <class Problem = no_host_access_to_memory_of<D>, class Fix = copy_to_the_host_with_dot_to_cpu>
    requires(!is_cpu_v<D>)
  T* begin() const = delete;
  template <class Problem = no_host_access_to_memory_of<D>, class Fix = copy_to_the_host_with_dot_to_cpu>
    requires(!is_cpu_v<D>)
  T* end() const = delete;

  /// A number is read from it with item(). Explicit from rank 1: otherwise compilers would try built-in operators on
  /// numbers too.
  template <class Number, class Problem = typename detail::number_mistake<Number, rank>::problem,
            class Fix = typename detail::number_mistake<Number, rank>::fix>
  explicit(rank != 0) operator Number() const = delete;

  /// The single element, copied to the host.
  T item() const;

  // Views: they share this tensor's storage.

  /// Elements begin, begin+step, ... before end of one axis.
  [[nodiscard]] tensor slice(detail::whole axis, detail::whole begin, detail::whole end, detail::whole step = 1) const;

  [[nodiscard]] tensor slice(detail::whole axis, detail::whole begin) const {
    return slice(axis, begin, this->size(axis));
  }

  /// Index i of one axis, which disappears.
  [[nodiscard]] auto select(detail::whole axis, detail::whole i) const
    requires(rank >= 1)
  {
    require_value("select");
    const int a = detail::checked_axis("select", axis, rank);
    T* const p = data_ + detail::select_offset(shape_.data(), strides_.data(), rank, a, i);
    return drop_axis(a, p);
  }

  /// `x[i]` is `x.select(0, i)`.
  [[nodiscard]] auto operator[](detail::whole i) const
    requires(rank >= 1)
  {
    return select(0, i);
  }

  template <expression E, class Problem = index_that_is_a_tensor,
            class Fix = write_index_select_masked_select_masked_fill_or_where>
  void operator[](const E&) const = delete;
  template <std::integral I, class Problem = indices_for_rank<1, 0>, class Fix = write_dot_item>
    requires(rank == 0)
  void operator[](I) const = delete;

  /// The same elements in another shape; one extent may be -1. Copies only when a strided view cannot show it.
  template <std::size_t N>
  [[nodiscard]] tensor<T, int{N}, D> reshape(const index_t (&to)[N]) const {
    return reshape(detail::to_extents(to));
  }
  template <int N>
  [[nodiscard]] tensor<T, N, D> reshape(extents<N> to) const;

  // What has its braces forgotten.
  template <std::integral... I, class Problem = extents_that_are_not_in_braces, class Fix = write_them_in_braces>
  void reshape(I...) const = delete;
  template <std::integral... I, class Problem = extents_that_are_not_in_braces, class Fix = write_them_in_braces>
  void permute(I...) const = delete;
  template <std::integral... I, class Problem = extents_that_are_not_in_braces, class Fix = write_them_in_braces>
  void broadcast_to(I...) const = delete;

  /// All elements along one axis.
  [[nodiscard]] tensor<T, 1, D> flatten() const { return reshape({-1}); }
  template <std::integral... I, class Problem = axes_that_are_known_when_the_program_runs,
            class Fix = write_reshape_with_the_shape>
    requires(sizeof...(I) > 0)
  void flatten(I...) const = delete;
  static constexpr bool requires_grad() { return false; }
  index_t stride(detail::whole axis) const { return strides_[detail::checked_axis("stride", axis, rank)]; }

  /// Exchanges two axes; without arguments the last two.
  [[nodiscard]] tensor transpose(detail::whole a = -2, detail::whole b = -1) const
    requires(rank >= 2)
  {
    require_value("transpose");
    tensor v = *this;
    const int i = detail::checked_axis("transpose", a, rank);
    const int j = detail::checked_axis("transpose", b, rank);
    std::swap(v.shape_[i], v.shape_[j]);
    std::swap(v.strides_[i], v.strides_[j]);
    return v;
  }

  /// Axis i of the result is axis axis_order[i] of this tensor.
  [[nodiscard]] tensor permute(const index_t (&axis_order)[std::size_t{rank > 0 ? rank : 1}]) const;

  /// Removes an axis of extent 1.
  template <class Problem = axis_that_is_left_out, class Fix = name_the_axis_as_the_rank_is_part_of_the_type>
  void squeeze() const = delete;
  [[nodiscard]] auto squeeze(detail::whole axis) const
    requires(rank >= 1)
  {
    require_value("squeeze");
    const int a = detail::checked_axis("squeeze", axis, rank);
    if (shape_[a] != 1) detail::refuse<shape_error>({"squeeze: axis ", a, " of shape ", shape_, " is not 1"});
    return drop_axis(a, data_);
  }

  /// Inserts an axis of extent 1 before `axis`.
  [[nodiscard]] tensor<T, rank + 1, D> unsqueeze(detail::whole axis) const
    requires(rank < max_rank)
  {
    require_value("unsqueeze");
    const int a = detail::checked_axis("unsqueeze", axis, rank + 1);
    extents<rank + 1> shape, strides;
    shape[a] = strides[a] = 1;
    for (int i = 0; i < rank; ++i) {
      const int to = i < a ? i : i + 1;
      shape[to] = shape_[i];
      strides[to] = strides_[i];
    }
    return shown_as<rank + 1>(data_, shape, strides);
  }

  /// Reverses an axis.
  [[nodiscard]] tensor flip(detail::whole axis) const
    requires(rank >= 1)
  {
    require_value("flip");
    const int a = detail::checked_axis("flip", axis, rank);
    tensor v = *this;
    if (shape_[a] > 0) v.data_ += (shape_[a] - 1) * strides_[a];
    v.strides_[a] = -strides_[a];
    return v;
  }

  /// The elements at which axis_b counts `offset` more than axis_a, as a last axis in place of the two: (n,m) at 0 =>
  /// (min(n, m)). Errors: index_error for axes that this tensor does not have, or for one axis twice.
  [[nodiscard]] tensor<T, (rank > 2 ? rank - 1 : 1), D> diagonal(detail::whole offset = 0, detail::whole axis_a = 0,
                                                                 detail::whole axis_b = 1) const
    requires(rank >= 2)
  {
    require_value("diagonal");
    extents<rank> shape = shape_, strides = strides_;
    T* const first = data_ + detail::diagonal_axes(shape.values, strides.values, rank, offset, axis_a, axis_b);
    extents<(rank > 2 ? rank - 1 : 1)> shape_of_view, strides_of_view;
    for (int i = 0; i < rank - 1; ++i) {
      shape_of_view[i] = shape[i];
      strides_of_view[i] = strides[i];
    }
    return shown_as<(rank > 2 ? rank - 1 : 1)>(first, shape_of_view, strides_of_view);
  }

  /// Windows of `size` neighbours along an axis, each `step` behind the one before: (…,n,…) => (…,(n - size) / step +
  /// 1,…,size), where the last axis is a window. Where windows share elements, such a view is for reading: writing to
  /// it is a shape_error. Errors: value_error for a size below 0 or a step below 1, shape_error for windows larger than
  /// the axis, index_error for an axis that this tensor does not have.
  [[nodiscard]] tensor<T, rank + 1, D> unfold(detail::whole axis, detail::whole size, detail::whole step) const
    requires(rank >= 1 && rank < max_rank)
  {
    require_value("unfold");
    extents<rank + 1> shape, strides;
    for (int i = 0; i < rank; ++i) {
      shape[i] = shape_[i];
      strides[i] = strides_[i];
    }
    detail::unfold_axes(shape.values, strides.values, rank, axis, size, step);
    return shown_as<rank + 1>(data_, shape, strides);
  }

  /// Repeats extents of 1 to fill `to`, without a copy. Such a view is for reading.
  template <std::size_t N>
  [[nodiscard]] tensor<T, int{N}, D> broadcast_to(const index_t (&to)[N]) const {
    return broadcast_to(detail::to_extents(to));
  }
  template <int N>
    requires(N >= rank)
  [[nodiscard]] tensor<T, N, D> broadcast_to(const extents<N>& to) const {
    require_value("broadcast_to");
    extents<N> merged = to;
    detail::checked_numel("broadcast_to", to.data(), N, sizeof(T));
    if (!detail::broadcast_into(merged.values, N, shape_.data(), rank) || !(merged == to))
      detail::refuse<shape_error>({"broadcast_to: shape ", shape_, " does not broadcast to ", to});
    extents<N> strides;
    detail::check_countable("broadcast_to", to.data(), N);
    detail::broadcast_strides(shape_.data(), strides_.data(), rank, to.data(), strides.values, N);
    return shown_as<N>(data_, to, strides);
  }

  /// This tensor when it is dense and row-major, otherwise a copy that is.
  [[nodiscard]] tensor contiguous() const { return is_contiguous() ? *this : dense_copy(memory_format::contiguous); }

  /// This tensor when it is dense in a format, otherwise a copy that is. The shape and the values are the same.
  /// `channels_last` is for rank 3 (N, C, L), 4 (N, C, H, W) and 5 (N, C, D, H, W): the channels of a pixel lie side by
  /// side. Elementwise work, gradients and optimizers keep the format of their operands.
  ///
  ///     tensor x = images.to_memory_format(channels_last);
  [[nodiscard]] tensor to_memory_format(memory_format f) const;

  /// A dense copy in new storage, its axes in memory in the same order.
  [[nodiscard]] tensor clone() const;

  /// cast<To>() of it.
  template <element To>
  [[nodiscard]] auto to() const {
    return this->template cast<To>();
  }
  /// The same handle when To is this device, otherwise a copy on To.
  template <device To>
  [[nodiscard]] tensor<T, Shape, To> to() const;

  /// Starts the same copy in the background; see pending. Do not write to this tensor meanwhile.
  template <device To>
  [[nodiscard]] pending<tensor<T, Shape, To>> to_async() const;

 private:
  template <class U, auto S, device E>
  friend class tensor;
  friend struct detail::access;

  void require_value(const char* op) const {
    if (!defined()) detail::refuse_undefined(op);
  }

  tensor dense_copy(memory_format f) const;

  template <int N>
  tensor<T, N, D> shown_as(T* p, const extents<N>& shape, const extents<N>& strides) const {
    tensor<T, N, D> v;
    v.storage_ = storage_;
    v.data_ = p;
    v.shape_ = shape;
    v.strides_ = strides;
    return v;
  }

  auto drop_axis(int axis, T* p) const {
    extents<(rank > 0 ? rank - 1 : 0)> shape, strides;
    for (int i = 0, j = 0; i < rank; ++i) {
      if (i == axis) continue;
      shape[j] = shape_[i];
      strides[j++] = strides_[i];
    }
    return shown_as<(rank > 0 ? rank - 1 : 0)>(p, shape, strides);
  }

  detail::storage_ptr storage_;
  T* data_ = nullptr;
  shape_type shape_;
  shape_type strides_;
};

// Not inside the class: g++ compiles what is there in every file, also where sinter::compiled holds it.

template <class T, auto Shape, device D>
bool tensor<T, Shape, D>::is_contiguous(memory_format f) const noexcept {
  return (f == memory_format::contiguous || (rank >= 3 && rank <= 5)) &&
         detail::are_same_strides(shape_, strides_, detail::strides_in(f, shape_));
}

template <class T, auto Shape, device D>
bool tensor<T, Shape, D>::is_dense() const noexcept {
  return is_contiguous() || detail::are_same_strides(shape_, strides_, detail::dense_strides_like(shape_, strides_));
}

template <class T, auto Shape, device D>
T tensor<T, Shape, D>::item() const {
  require_value("item");
  if (numel() != 1) detail::refuse<shape_error>({"item: shape ", shape_, " does not hold exactly one element"});
  if constexpr (is_cpu_v<D>) {
    return *data_;
  } else {
    detail::refuse_capture("item()", "the value is not there before replay(); read it then");
    T value;
    detail::device_runtime<D>::copy_to_host(&value, data_, sizeof(T));
    return value;
  }
}

template <class T, auto Shape, device D>
tensor<T, Shape, D> tensor<T, Shape, D>::slice(detail::whole axis, detail::whole begin, detail::whole end,
                                               detail::whole step) const {
  require_value("slice");
  tensor v = *this;
  v.data_ += detail::slice_axis(v.shape_.values, v.strides_.values, rank, axis, begin, end, step);
  return v;
}

template <class T, auto Shape, device D>
template <int N>
tensor<T, N, D> tensor<T, Shape, D>::reshape(extents<N> to) const {
  require_value("reshape");
  detail::resolve_reshape(numel(), to.values, N, {shape_.data(), rank});
  extents<N> strides;
  if (!detail::reshape_strides(shape_.data(), strides_.data(), rank, to.data(), strides.values, N))
    return dense_copy(memory_format::contiguous).reshape(to);
  return shown_as<N>(data_, to, strides);
}

template <class T, auto Shape, device D>
tensor<T, Shape, D> tensor<T, Shape, D>::permute(const index_t (&axis_order)[std::size_t{rank > 0 ? rank : 1}]) const {
  require_value("permute");
  extents<rank> axes;
  for (int i = 0; i < rank; ++i) axes[i] = axis_order[i];
  detail::checked_permutation(axes.values, rank);
  tensor v = *this;
  for (int i = 0; i < rank; ++i) {
    v.shape_[i] = shape_[static_cast<int>(axes[i])];
    v.strides_[i] = strides_[static_cast<int>(axes[i])];
  }
  return v;
}

template <class T, auto Shape, device D>
tensor<T, Shape, D> tensor<T, Shape, D>::to_memory_format(memory_format f) const {
  if (f == memory_format::channels_last && (rank < 3 || rank > 5))
    detail::refuse<shape_error>(
        {"to_memory_format: channels_last is for tensors of rank 3 to 5, not of shape ", shape_});
  require_value("to_memory_format");
  return is_contiguous(f) ? *this : dense_copy(f);
}

template <class T, auto Shape, device D>
[[gnu::noinline]] tensor<T, Shape, D> tensor<T, Shape, D>::clone() const {
  return detail::evaluation<tensor>::run(*this);
}

template <class T, auto Shape, device D>
[[gnu::noinline]] tensor<T, Shape, D> tensor<T, Shape, D>::dense_copy(memory_format f) const {
  require_value("contiguous");
  return detail::evaluation<tensor>::run_into(*this, uninitialized(shape_, detail::strides_in(f, shape_)));
}

template <expression E>
tensor(E&&) -> tensor<element_of<E>, detail::bare<E>::rank, device_of<E>>;
// `tensor t = {1.f, 2.f}` has the element type of the numbers.
template <element T, std::same_as<T>... More>
tensor(T, More...) -> tensor<T, 1, cpu>;
template <element T, std::size_t N, std::size_t... More>
tensor(const T (&)[N], const T (&... rows)[More]) -> tensor<T, 2, cpu>;
tensor() -> tensor<detail::no_type, 0, cpu>;
template <element T>
tensor(const std::vector<T>&) -> tensor<T, 1, cpu>;
template <element T>
tensor(const std::vector<std::vector<T>>&) -> tensor<T, 2, cpu>;
template <element T, std::size_t N>
tensor(const std::array<T, N>&) -> tensor<T, 1, cpu>;
template <class Target, class E>
tensor(assignment<Target, E>) -> tensor<element_of<Target>, detail::bare<Target>::rank, device_of<Target>>;

namespace detail {

struct access {
  template <class T, auto S, class D>
  static T* data(const tensor<T, S, D>& t) {
    return t.data_;
  }
  template <class T, auto S, class D>
  static const storage_ptr& storage_of(const tensor<T, S, D>& t) {
    return t.storage_;
  }
  template <class T, int R, class D>
  static tensor<T, R, D> make(storage_ptr s, T* data, const extents<R>& shape, const extents<R>& strides) {
    tensor<T, R, D> t;
    t.storage_ = std::move(s);
    t.data_ = data;
    t.shape_ = shape;
    t.strides_ = strides;
    return t;
  }
  /// The elements of a dense tensor in the order of memory.
  template <class T, auto S, class D>
  static tensor<T, 1, D> in_memory_order(const tensor<T, S, D>& t) {
    return make<T, 1, D>(t.storage_, t.data_, {{t.numel()}}, {{1}});
  }
  // Of variables (grad/).
  template <class V>
  static const auto& value_of(const V& v) {
    return v.value_;
  }
  template <class V>
  static const auto& state_of(const V& v) {
    return v.state_;
  }
  template <int Order, class T, auto S, class D, class State>
  static variable<T, S, D, Order> make_variable(tensor<T, S, D> value, State state) {
    variable<T, S, D, Order> v;
    v.value_ = std::move(value);
    v.state_ = std::move(state);
    return v;
  }
};

}  // namespace detail
}  // namespace sinter
