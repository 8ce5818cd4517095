// sinter/grad/variable.hpp: a tensor that is tracked, its gradient, and its views.
#pragma once

#include <cmath>

#include "sinter/expr/evaluate.hpp"
#include "sinter/grad/walk.hpp"

namespace sinter {

namespace detail {

template <class T>
struct add_kernel {
  static constexpr int leaves = 2, outputs = 1;
  using leaf_types = kernel::type_list<T, T>;
  using output_types = kernel::type_list<T>;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    m.template put<0, T>(m.template load<0, T>() + m.template load<1, T>());
  }
};

/// to = e, or to += e.
template <class E, class T, auto S, device D>
void write_or_add(const E& e, const tensor<T, S, D>& to, bool add) {
  if (add) tensor<T, S, D>(to) += e;
  else write(e, to);
}

template <class T, int R, device D>
struct typed_state : grad_state {
  extents<R> shape, dense;  ///< and the strides of gradients, which are dense
  tensor<T, R, D> grad;     ///< of the pass that runs
  tensor<T, R, D> kept;     ///< of finished passes where has_kept; else the home that waits for it, or undefined

  /// For a value of this shape with these strides.
  typed_state(const extents<R>& s, const extents<R>& strides);

  void* gradient(bool& add) override;
  /// The same for work that can only add: zeroes on first use.
  const tensor<T, R, D>& sum();
  const index_t* strides() const noexcept override;
  void drop_gradient() noexcept override;
  const void* gradient_to_read() const noexcept override;
  void share_gradient(const grad_state& other) noexcept override;
  void add_to_kept() override;
  void keep_gradient() noexcept override;
  void* kept_gradient() const noexcept override;
  void drop_kept() noexcept override;
  storage_ptr copy_of_kept() const override;
  storage_ptr settle() override;
  void restore(const storage_ptr& before) noexcept override;

 private:
  /// Memory of its own for the gradient.
  void unshare();
  std::size_t bytes() const { return static_cast<std::size_t>(kept.numel()) * sizeof(T); }
  void copy_to_kept(const void* from) {
    device_runtime<D>::copy_within(access::data(kept), from, bytes());
    note_write(*access::storage_of(kept).get());
  }
};

// Not inside the class: g++ compiles what is there in every file, also where sinter::compiled holds it.

template <class T, int R, device D>
typed_state<T, R, D>::typed_state(const extents<R>& s, const extents<R>& strides)
    : shape(s), dense(dense_strides_like(s, strides)) {}
template <class T, int R, device D>
void* typed_state<T, R, D>::gradient(bool& add) {
  add = has_grad;
  if (has_grad) {
    complete_gradient();
    if (is_shared) unshare();
  } else {
    if (at_home && !has_kept) {
      grad = kept;
      note_write(*access::storage_of(kept).get());
    } else {
      grad = tensor<T, R, D>::uninitialized(shape, dense);
    }
    has_grad = true;
  }
  return access::data(grad);
}
template <class T, int R, device D>
void typed_state<T, R, D>::unshare() {
  if (access::storage_of(grad).use_count() > 1) {
    const auto own = tensor<T, R, D>::uninitialized(shape, dense);
    device_runtime<D>::copy_within(access::data(own), access::data(grad),
                                   static_cast<std::size_t>(own.numel()) * sizeof(T));
    grad = own;
  }
  is_shared = false;
}
template <class T, int R, device D>
const void* typed_state<T, R, D>::gradient_to_read() const noexcept {
  return access::data(grad);
}
template <class T, int R, device D>
void typed_state<T, R, D>::share_gradient(const grad_state& other) noexcept {
  grad = static_cast<const typed_state&>(other).grad;
  has_grad = is_shared = true;
}
template <class T, int R, device D>
const tensor<T, R, D>& typed_state<T, R, D>::sum() {
  bool add = false;
  gradient(add);
  if (!add) write(constant_expr<T>{T(0)}, grad);
  return grad;
}
template <class T, int R, device D>
const index_t* typed_state<T, R, D>::strides() const noexcept {
  return dense.data();
}
template <class T, int R, device D>
void typed_state<T, R, D>::drop_gradient() noexcept {
  grad = {};
  has_grad = is_shared = false;
  fill_rest = nullptr;
}
template <class T, int R, device D>
void typed_state<T, R, D>::add_to_kept() {
  if (!has_kept) {
    // What was made elsewhere, and handed over as it is.
    if (at_home && access::data(grad) != access::data(kept)) copy_to_kept(access::data(grad));
    return;
  }
  T* const sum = access::data(kept);
  backend<D>::update(add_kernel<T>{}, kept.numel(), {sum, access::data(grad)}, {sum});
  note_write(*access::storage_of(kept).get());
}
template <class T, int R, device D>
void typed_state<T, R, D>::keep_gradient() noexcept {
  if (!has_kept && !at_home) kept = std::move(grad);
  has_kept = true;
  drop_gradient();
}
template <class T, int R, device D>
void* typed_state<T, R, D>::kept_gradient() const noexcept {
  return has_kept ? access::data(kept) : nullptr;
}
template <class T, int R, device D>
void typed_state<T, R, D>::drop_kept() noexcept {
  if (!at_home) kept = {};
  has_kept = false;
}
template <class T, int R, device D>
storage_ptr typed_state<T, R, D>::copy_of_kept() const {
  return has_kept ? copy_of_memory<D>(access::data(kept), bytes()) : storage_ptr{};
}
template <class T, int R, device D>
storage_ptr typed_state<T, R, D>::settle() {
  complete_gradient();
  storage_ptr before = copy_of_kept();
  add_to_kept();
  keep_gradient();
  return before;
}
template <class T, int R, device D>
void typed_state<T, R, D>::restore(const storage_ptr& before) noexcept {
  if (!before) return drop_kept();
  if (!kept.defined()) {
    kept = access::make<T, R, D>(before, static_cast<T*>(before->data), shape, dense);
  } else {
    try {
      copy_to_kept(before->data);
    } catch (...) {  // a GPU that has failed: what is on it is lost
    }
  }
  has_kept = true;
}

/// Some of the numbers along an axis, as a view.
struct slice_view {
  index_t axis, begin, end, step;
  template <class X>
  auto operator()(const X& x) const {
    return x.slice(axis, begin, end, step);
  }
};
struct select_view {
  index_t axis, i;
  template <class X>
  auto operator()(const X& x) const {
    return x.select(axis, i);
  }
};

struct unfold_view {
  index_t axis, size, step;
  template <class X>
  auto operator()(const X& x) const {
    return x.unfold(axis, size, step);
  }
  /// to += g, window by window: windows share elements.
  template <class G, class To>
  void add(const G& g, const To& to) const {
    const int a = static_cast<int>(axis < 0 ? axis + To::rank : axis);
    const index_t reach = (g.shape()[a] - 1) * step + 1;
    for (index_t i = 0; i < size; ++i) to.slice(a, i, i + reach, step) += g.select(-1, i);
  }
};

/// grad += g; the first g is taken itself if it is the only handle to its elements, else copied.
template <class T, int R, device D>
void add_gradient(const state_ptr& to, const tensor<T, R, D>& g) {
  auto& s = static_cast<typed_state<T, R, D>&>(*to.get());
  if (s.has_grad) {
    bool add = false;
    s.gradient(add);
    s.grad += g;
  } else {
    if (g.strides() == s.dense && access::storage_of(g).use_count() == 1) {
      s.grad = g;
      s.has_grad = true;
      return;
    }
    bool add = false;
    s.gradient(add);
    write(g, s.grad);
  }
}

/// What tensors have for writing and variables have not. It is no template: one for all types of variables.
struct no_updates_in_place {
#define SINTER_WRITES_IN_PLACE(name)                                                                           \
  template <class Problem = updating_a_tracked_variable_in_place, class Fix = write_through_dot_value_instead> \
  void name(...) const = delete;
  SINTER_WRITES_IN_PLACE(fill_)
  SINTER_WRITES_IN_PLACE(zero_)
  SINTER_WRITES_IN_PLACE(copy_)
  SINTER_WRITES_IN_PLACE(add_)
  SINTER_WRITES_IN_PLACE(sub_)
  SINTER_WRITES_IN_PLACE(mul_)
  SINTER_WRITES_IN_PLACE(div_)
#define SINTER_WRITES_MEMBER_IN_PLACE(name) SINTER_WRITES_IN_PLACE(name##_)
  SINTER_MEMBERS_IN_PLACE(SINTER_WRITES_MEMBER_IN_PLACE)
  SINTER_MEMBERS_IN_PLACE_OF_NOTHING_ELSE(SINTER_WRITES_MEMBER_IN_PLACE)
#undef SINTER_WRITES_MEMBER_IN_PLACE
#undef SINTER_WRITES_IN_PLACE
};

}  // namespace detail

/// A tensor whose uses are recorded, so that backward() can find its gradient. An expression with a variable among its
/// leaves evaluates to a variable. Copies are handles to the same value and gradient.
///
///     variable w = zeros<float>({10, 784});
///     variable loss = sum(square(w - target));
///     loss.backward();
///     w.value() -= 0.1f * w.grad();
///
/// Order is how often it can be differentiated: 1, or 2 for variables whose gradient is to be differentiated again;
/// see grad().
template <class T, auto Shape, device D, int Order>
class variable final : public detail::members<variable<T, Shape, D, Order>>, public detail::no_updates_in_place {
  static_assert(floating_element<T>, "sinter: only floating-point elements have gradients; keep others in a tensor");
  static_assert(Order == 1 || Order == 2, "sinter: a variable can be differentiated once or twice");

 public:
  using value_type = T;
  using device_type = D;
  using tensor_type = tensor<T, Shape, D>;
  static constexpr int rank = tensor_type::rank;
  static constexpr int order = Order;
  static constexpr bool is_expression = true;
  using shape_type = extents<rank>;
  using detail::members<variable>::item, detail::members<variable>::to;

  variable() = default;
  variable(const variable&) = default;
  variable(variable&&) noexcept = default;
  ~variable() = default;
  /// The name shows other's value, with its place in the graph, from now on.
  variable& operator=(const variable&) & = default;
  variable& operator=(variable&&) & noexcept = default;
  /// A view is not written through: the tape would not see it.
  template <class E, class Problem = updating_a_tracked_variable_in_place, class Fix = write_through_dot_value_instead>
  void operator=(const E&) && = delete;

  /// A leaf of the graph with this value.
  variable(tensor_type value)  // NOLINT: implicit on purpose
      : value_(std::move(value)),
        state_(value_.defined() ? new detail::typed_state<T, rank, D>(value_.shape(), value_.strides()) : nullptr) {}

  /// The result of a statement.
  template <expression E>
    requires(!detail::is_tensor<detail::bare<E>> && !detail::is_variable<detail::bare<E>> &&
             detail::converts<E, T, rank, D, Order>)
  variable(E&& e)  // NOLINT: implicit on purpose
      : variable(detail::evaluation<detail::bare<E>>::run(e, !std::is_lvalue_reference_v<E>)) {}

  /// What does not fit is rejected, with the reason as Problem and the way out as Fix.
  template <class E, class Problem = typename detail::conversion_mistake<E, T, rank, D, Order>::problem,
            class Fix = typename detail::conversion_mistake<E, T, rank, D, Order>::fix>
  variable(E&&) = delete;

  bool defined() const noexcept { return value_.defined(); }
  const shape_type& shape() const noexcept { return value_.shape(); }
  template <std::integral I, class Problem = shape_with_an_axis, class Fix = write_size_of_the_axis>
  void shape(I) const = delete;
  index_t extent(detail::whole axis) const { return value_.extent(axis); }
  index_t numel() const noexcept { return value_.numel(); }

  /// The value as a plain tensor on the same storage. Writing through it is not recorded: optimizers do so.
  [[nodiscard]] tensor_type value() const { return value_; }
  /// The value, cut off from the graph.
  [[nodiscard]] tensor_type detach() const { return value_; }

  /// A number is read from it with item(). Explicit from rank 1: otherwise compilers would try built-in operators on
  /// numbers too.
  template <class Number, class Problem = typename detail::number_mistake<Number, rank>::problem,
            class Fix = typename detail::number_mistake<Number, rank>::fix>
  explicit(rank != 0) operator Number() const = delete;

  /// The single element, copied to the host.
  T item() const { return value_.item(); }
  /// Reads one element; see tensor::operator().
  template <std::integral... I>
    requires(detail::is_fitting<detail::access_mistake<D, sizeof...(I), rank>>)
  T operator()(I... i) const {
    return value_(i...);
  }
  template <std::integral... I, class Problem = typename detail::access_mistake<D, sizeof...(I), rank>::problem,
            class Fix = typename detail::access_mistake<D, sizeof...(I), rank>::fix>
  T operator()(I...) const = delete;

  bool has_grad() const noexcept { return state_ && state_->has_kept; }
  /// What backward() has gathered; dense, of this variable's shape. The tensor shows what later passes add; where the
  /// gradient has a home (grad/home.hpp), also the gradient of the passes after a zero_grad().
  tensor_type grad() const {
    if (!has_grad())
      detail::refuse<autograd_error>(
          {"grad: the variable of shape ", shape(),
           " has no gradient; run backward() first, and retain_grad() before it on results of statements"});
    state_->make_dense();
    return state().kept;
  }
  /// Forgets the gradient; the next backward() starts from nothing.
  void zero_grad() const noexcept {
    if (state_) state_->drop_kept();
  }
  /// Keeps the gradient of a result of a statement, which backward() otherwise frees once it is used.
  void retain_grad() const {
    if (state_) state_->retain = true;
  }
  /// True when nothing recorded made this variable: parameters and inputs.
  bool is_leaf() const noexcept { return !state_ || state_->producer == nullptr; }

  /// Adds d(this)/d(leaf) to the gradient of every leaf; this variable must hold one element.
  void backward(backward_options options = {}) const { run_backward(one(), options, nullptr); }
  /// Adds the vector-Jacobian product seed * d(this)/d(leaf) to the gradient of every leaf.
  void backward(const tensor_type& seed, backward_options options = {}) const { run_backward(seed, options, nullptr); }
  /// The same; the listener's functions are called as soon as the gradients of its leaves are complete.
  void backward(gradient_listener& listener, backward_options options = {}) const {
    run_backward(one(), options, &listener.leaves_);
  }
  void backward(const tensor_type& seed, gradient_listener& listener, backward_options options = {}) const {
    run_backward(seed, options, &listener.leaves_);
  }
  template <class S, class Problem = typename detail::seed_mistake<S, T, rank, D>::problem,
            class Fix = typename detail::seed_mistake<S, T, rank, D>::fix>
  void backward(const S& seed, backward_options = {}) const = delete;
  template <class S, class Problem = typename detail::seed_mistake<S, T, rank, D>::problem,
            class Fix = typename detail::seed_mistake<S, T, rank, D>::fix>
  void backward(const S& seed, gradient_listener&, backward_options = {}) const = delete;

  SINTER_MEMBER_NAMED_OTHERWISE(register_hook, use_a_gradient_listener_in_backward)
  SINTER_MEMBER_NAMED_OTHERWISE(requires_grad_, detach_it_or_leave_it_out_of_the_optimizer)

  // Views; each is recorded, and its gradient goes to the elements it shows.
  [[nodiscard]] variable slice(detail::whole axis, detail::whole begin, detail::whole end,
                               detail::whole step = 1) const {
    return viewed(detail::slice_view{axis, begin, end, step});
  }
  [[nodiscard]] variable slice(detail::whole axis, detail::whole begin) const {
    return slice(axis, begin, this->size(axis));
  }
  [[nodiscard]] auto select(detail::whole axis, detail::whole i) const
    requires(rank >= 1)
  {
    return viewed(detail::select_view{axis, i});
  }
  [[nodiscard]] auto operator[](detail::whole i) const
    requires(rank >= 1)
  {
    return select(0, i);
  }
  template <std::size_t N>
  [[nodiscard]] auto reshape(const index_t (&to)[N]) const {
    return reshaped(value_.reshape(to));
  }
  template <int N>
  [[nodiscard]] auto reshape(const extents<N>& to) const {
    return reshaped(value_.reshape(to));
  }
  // What has its braces forgotten.
  template <std::integral... I, class Problem = extents_that_are_not_in_braces, class Fix = write_them_in_braces>
  void reshape(I...) const = delete;
  template <std::integral... I, class Problem = extents_that_are_not_in_braces, class Fix = write_them_in_braces>
  void permute(I...) const = delete;
  template <std::integral... I, class Problem = extents_that_are_not_in_braces, class Fix = write_them_in_braces>
  void broadcast_to(I...) const = delete;

  [[nodiscard]] auto flatten() const { return reshape({-1}); }
  [[nodiscard]] variable transpose(detail::whole a = -2, detail::whole b = -1) const
    requires(rank >= 2)
  {
    return viewed([=](const auto& t) { return t.transpose(a, b); });
  }
  [[nodiscard]] variable permute(const index_t (&axis_order)[std::size_t{rank > 0 ? rank : 1}]) const {
    return viewed([axes = detail::to_extents(axis_order)](const auto& t) { return t.permute(axes.values); });
  }
  [[nodiscard]] auto squeeze(detail::whole axis) const
    requires(rank >= 1)
  {
    return viewed([=](const auto& t) { return t.squeeze(axis); });
  }
  template <class Problem = axis_that_is_left_out, class Fix = name_the_axis_as_the_rank_is_part_of_the_type>
  void squeeze() const = delete;
  [[nodiscard]] auto unsqueeze(detail::whole axis) const {
    return viewed([=](const auto& t) { return t.unsqueeze(axis); });
  }
  [[nodiscard]] variable flip(detail::whole axis) const
    requires(rank >= 1)
  {
    return viewed([=](const auto& t) { return t.flip(axis); });
  }

  [[nodiscard]] auto diagonal(detail::whole offset = 0, detail::whole axis_a = 0, detail::whole axis_b = 1) const
    requires(rank >= 2)
  {
    return viewed([=](const auto& t) { return t.diagonal(offset, axis_a, axis_b); });
  }

  [[nodiscard]] auto unfold(detail::whole axis, detail::whole size, detail::whole step) const
    requires(rank >= 1 && rank < max_rank)
  {
    return viewed(detail::unfold_view{axis, size, step});
  }

  /// This variable when its value is dense in a format, row-major for contiguous(), otherwise a recorded copy that is.
  [[nodiscard]] variable contiguous() const { return to_memory_format(memory_format::contiguous); }
  [[nodiscard]] variable to_memory_format(memory_format f) const {
    const tensor_type value = value_.to_memory_format(f);
    if (value.strides() == value_.strides()) return *this;
    return detail::evaluation<variable>::copied(*this, value);
  }

  /// Repeats extents of 1 to fill `to`; a copy, other than a tensor's. The gradient is summed over what was repeated.
  template <std::size_t N>
  [[nodiscard]] variable<T, int{N}, D, Order> broadcast_to(const index_t (&to)[N]) const {
    return broadcast_to(detail::to_extents(to));
  }
  template <int N>
    requires(N >= rank)
  [[nodiscard]] variable<T, N, D, Order> broadcast_to(const extents<N>& to) const {
    const auto shown = value_.broadcast_to(to);
    return *this * ones<T, D>(detail::ones_extents<N>()).broadcast_to(shown.shape());
  }

  SINTER_MEMBER_NAMED_OTHERWISE(data, write_dot_value_and_then_dot_data)

  /// A recorded copy.
  [[nodiscard]] variable clone() const { return detail::evaluation<variable>::copied(*this, value_.clone()); }
  /// Everything that is of this type is tracked.
  static constexpr bool requires_grad() { return true; }

  /// cast<To>() of it.
  template <element To>
  [[nodiscard]] auto to() const {
    return this->template cast<To>();
  }
  /// The same variable when To is this device, otherwise a recorded copy on To, whose gradient is copied back.
  template <device To>
  [[nodiscard]] variable<T, Shape, To, Order> to() const;

 private:
  friend struct detail::access;
  detail::typed_state<T, rank, D>& state() const {
    return static_cast<detail::typed_state<T, rank, D>&>(*state_.get());
  }

  /// The seed of a variable of one element.
  tensor_type one() const;
  void run_backward(const tensor_type& seed, backward_options options, detail::listened_leaves* listener) const;

  template <int R>
  auto reshaped(const tensor<T, R, D>& value) const;
  template <class F>
  auto viewed(F f) const;

  tensor_type value_;
  detail::state_ptr state_;
};

template <class T, auto Shape, device D, int Order>
auto variable<T, Shape, D, Order>::one() const -> tensor_type {
  if (!defined()) detail::refuse_undefined("backward");
  if (numel() != 1)
    detail::refuse<shape_error>({"backward: shape ", shape(), " is not a scalar; pass a seed of that shape"});
  auto seed = tensor_type::uninitialized(shape());
  detail::write(constant_expr<T>{T(1)}, seed);
  return seed;
}
template <class T, auto Shape, device D, int Order>
void variable<T, Shape, D, Order>::run_backward(const tensor_type& seed, backward_options options,
                                                detail::listened_leaves* listener) const {
  if (!state_)
    detail::refuse<autograd_error>(
        {"backward: this variable of shape ", shape(), " was computed under no_grad or is empty; there is no graph"});
  if (!seed.defined()) detail::refuse_undefined("backward, seed");
  if (!(seed.shape() == shape()))
    detail::refuse<shape_error>({"backward: seed of shape ", seed.shape(), " for a variable of shape ", shape()});
  if (is_leaf() || state_->retain || !(seed.strides() == state().dense)) {
    detail::add_gradient(state_, seed.clone());
  } else {  // no handle shows this gradient: the seed itself serves, and is only read
    state().grad = seed;
    state_->has_grad = true;
  }
  detail::walk_back(state_, options.retain_graph, 0, listener);
}

template <expression E>
variable(E&&)
    -> variable<element_of<E>, detail::bare<E>::rank, device_of<E>, detail::larger(1, detail::bare<E>::order)>;

/// A constant with the value of x: what follows is not tracked through it.
template <class T, auto S, device D, int Order>
tensor<T, S, D> constant(const variable<T, S, D, Order>& x) {
  return x.detach();
}

/// backward() as a function; see variable::backward.
template <class T, auto S, device D, int Order>
void backward(const variable<T, S, D, Order>& y, backward_options options = {}) {
  y.backward(options);
}
template <class T, auto S, device D, int Order>
void backward(const variable<T, S, D, Order>& y, const tensor<T, S, D>& seed, backward_options options = {}) {
  y.backward(seed, options);
}
template <class T, auto S, device D, int Order>
void backward(const variable<T, S, D, Order>& y, gradient_listener& listener, backward_options options = {}) {
  y.backward(listener, options);
}
template <class T, auto S, device D, int Order>
void backward(const variable<T, S, D, Order>& y, const tensor<T, S, D>& seed, gradient_listener& listener,
              backward_options options = {}) {
  y.backward(seed, listener, options);
}

namespace detail {

template <class T, auto S, device D, int Order>
struct lowering<variable<T, S, D, Order>> {
  template <bool Track>
  static kernel::leaf<T, Track> plan(const variable<T, S, D, Order>&) {
    return {};
  }
};

}  // namespace detail

/// Writes the value to a stream, as a tensor is written.
template <class Stream, class T, auto Shape, device D, int Order>
  requires requires(Stream& s, const std::string& text) { s << text; }
Stream& operator<<(Stream& out, const variable<T, Shape, D, Order>& v) {
  out << v.value();
  return out;
}

}  // namespace sinter
