// sinter/grad/kernel_backward.hpp: the tape entry of every op with a kernel of its own.
#pragma once

#include <memory>

#include "sinter/expr/op_members.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/grad/view.hpp"

namespace sinter {
namespace ops {

/// How a kernel takes an operand.
enum class take {
  expression,  ///< as it is, also with points, which run when the kernel does
  formula,     ///< with the elementwise work on it, which runs inside the kernel
  strided,     ///< evaluated, with any strides
  dense,       ///< evaluated, dense in the op's format
};

}  // namespace ops

namespace detail {

template <int I, class A>
struct pack_item {
  A value;
};
template <class Places, class... A>
struct pack_of;
/// Values side by side, told apart by position. No std::tuple, and no recursion, which take longer to compile.
template <class... A>
using pack = pack_of<std::make_integer_sequence<int, sizeof...(A)>, A...>;

template <int... I, class... A>
struct pack_of<std::integer_sequence<int, I...>, A...> : pack_item<I, A>... {
  pack_of() = default;
  explicit pack_of(A&&... a)
    requires(sizeof...(A) > 0)
      : pack_item<I, A>{std::move(a)}... {}

  template <int N>
  auto& get() {
    return item<N>(*this).value;
  }
  template <int N>
  const auto& get() const {
    return item<N>(*this).value;
  }
  /// f(first, ...)
  template <class F>
  decltype(auto) apply(const F& f) const {
    return f(pack_item<I, A>::value...);
  }
  /// f(one) for each.
  template <class F>
  void each(const F& f) {
    (f(pack_item<I, A>::value), ...);
  }
  template <class F>
  void each(const F& f) const {
    (f(pack_item<I, A>::value), ...);
  }

 private:
  template <int N, class X>
  static pack_item<N, X>& item(pack_item<N, X>& one) {
    return one;
  }
  template <int N, class X>
  static const pack_item<N, X>& item(const pack_item<N, X>& one) {
    return one;
  }
};

template <class... A>
pack<A...> make_pack(A... a) {
  return pack<A...>(std::move(a)...);
}

/// An operand as backward keeps it: nothing of it where no derivative reads it.
template <class T, int R>
struct unread_operand {
  using value_type = T;
  static constexpr int rank = R;
  template <class E>
  void keep(const E&) {}
  void drop() {}
};
template <class E>
struct kept_operand : versioned_expression<E> {
  using value_type = element_of<E>;
  static constexpr int rank = E::rank;
};
template <class A, bool Read>
using operand_kept = std::conditional_t<Read, kept_operand<bare<decltype(untrack(std::declval<const A&>()))>>,
                                        unread_operand<element_of<A>, A::rank>>;

/// Which operands backward of Op reads, a bit each.
template <class Op>
constexpr unsigned operands_read() {
  unsigned all = 0;
  for (const unsigned one : Op::grad_uses) all |= one;
  return all;
}

/// Where a kernel writes the gradient of an operand.
template <class Tensor>
struct gradient_place {
  Tensor to;         ///< dense
  bool add = false;  ///< to what is there, instead of overwriting it
};

/// Backward of a kernel op: Op::grad_uses[I] says what the gradient of operand I reads, and kernels<Op, D>::reverse
/// makes all of them. That is handed this entry, of which it uses op, gradient(), result(), saved, operand<I>(),
/// wants<I>() and place_of<I>(). Where there is no such kernel, op.grad<I>(gradient, operands..., result) is the
/// gradient of operand I, as of an elementwise op; kernel::unneeded stands for what grad_uses does not name.
template <class Op, class T, int R, device D, class Saved, class... Kept>
class kernel_backward : public tape_entry {
 public:
  static constexpr int differentiable = static_cast<int>(sizeof(Op::grad_uses) / sizeof(unsigned));
  using value_type = T;
  using device_type = D;
  static constexpr int rank = R;
  static constexpr bool reads_result = (operands_read<Op>() & uses::result) != 0;

  Op op;
  Saved saved;  ///< what forward returned

  kernel_backward(const Op& what, const Saved& by_forward) : op(what), saved(by_forward) {}

  /// The gradient of the result; dense in the op's format, or with any strides where the op keeps the order.
  const tensor<T, R, D>& gradient() const { return gradient_; }
  const tensor<T, R, D>& result() const {
    static_assert(reads_result, "sinter: grad_uses does not name uses::result");
    return result_;
  }
  /// The gradient that the state of a result of such an entry has.
  static const tensor<T, R, D>& gradient_in(const grad_state& y) {
    return static_cast<const typed_state<T, R, D>&>(y).grad;
  }
  /// An operand as forward had it. Errors: autograd_error if it was written to since.
  template <int I>
  const auto& operand() const {
    return kept_.template get<I>().get("backward of", name);
  }
  /// Gathers the gradient of operand I; null where nobody asks for it.
  template <int I>
  const state_ptr& source() const {
    return sources_[I];
  }
  template <int I>
  bool wants() const {
    return bool(sources_[I]);
  }
  /// Where it goes: dense in the op's format, or in any order for an operand that kernels take strided. Allocates it on
  /// first use.
  template <int I>
  auto place_of() const {
    auto& s = state_of<I>();
    bool add = false;
    s.gradient(add);
    using Gradient = bare<decltype(s.grad)>;
    if constexpr (Op::takes(I) != ops::take::strided) {
      if (!s.grad.is_contiguous(Op::format)) {
        auto& late = late_.template get<I>();
        late = {Gradient::uninitialized(s.shape, strides_in(Op::format, s.shape)), add};
        return gradient_place<Gradient>{late.to, false};
      }
    }
    return gradient_place<Gradient>{s.grad, add};
  }
  /// The same for kernels that can only add: zeroes where nothing is there.
  template <int I>
  auto sum_of() const {
    const auto place = place_of<I>();
    if (!place.add) write(constant_expr<element_of<decltype(place.to)>>{0}, place.to);
    return place.to;
  }

  /// op.grad<I> of g, evaluated, for the result y; operand<K>() gives an operand that it reads.
  template <int I, class G, class Operand, class Y>
  auto derivative(const G& g, const Operand& operand, const Y& y) const {
    const auto read = [&]<int K>() -> decltype(auto) {
      if constexpr ((Op::grad_uses[I] >> K & 1) != 0) return operand.template operator()<K>();
      else return kernel::unneeded();
    };
    return [&]<int... K>(std::integer_sequence<int, K...>) {
      if constexpr ((Op::grad_uses[I] & uses::result) != 0)
        return eval(op.template grad<I>(g, read.template operator()<K>()..., y));
      else return eval(op.template grad<I>(g, read.template operator()<K>()..., kernel::unneeded()));
    }(std::make_integer_sequence<int, static_cast<int>(sizeof...(Kept))>());
  }

  // Called when the op is recorded.
  template <int I>
  void set_source(state_ptr source) {
    if constexpr (I < differentiable) sources_[I] = std::move(source);
  }
  /// Once the sources are set: keeps e where a gradient that somebody asks for reads it.
  template <int I, class E>
  void keep_operand(const E& e) {
    for (int to = 0; to < differentiable; ++to)
      if (sources_[to] && (Op::grad_uses[to] >> I & 1) != 0) return kept_.template get<I>().keep(untrack(e));
  }
  void keep_result(const tensor<T, R, D>& y) {
    if constexpr (reads_result) {
      result_ = y;
      version_ = access::storage_of(y)->version.load(std::memory_order_relaxed);
    }
  }

  /// Rules see this class; see kernel_backward_of.
  entry_kind kind() final { return kind_of(*this); }
  const state_ptr* inputs(int& count) const final {
    count = differentiable;
    return sources_;
  }
  void release() override {
    result_ = {};
    saved = Saved{};
    kept_.each([](auto& operand) { operand.drop(); });
  }
  void backward(grad_state& y) override {
    if constexpr (reads_result)
      if (access::storage_of(result_)->version.load(std::memory_order_relaxed) != version_)
        refuse<autograd_error>(
            {"backward of '", name, "': its result of shape ", result_.shape(),
             " was modified in place after the statement; use a copy, or write to it after backward()"});
    gradient_ = gradient_in(y);
    if constexpr (!Op::keeps_order) gradient_ = gradient_.to_memory_format(Op::format);
    late_ = {};  // of a pass that ended in an error
    if constexpr (has_grad<Op> && !requires { kernels<Op, D>::reverse(op, *this); })
      add_gradients(std::make_integer_sequence<int, differentiable>());
    else kernels<Op, D>::reverse(op, *this);
    move_gradients(std::make_integer_sequence<int, differentiable>());
    late_ = {};
    gradient_ = {};
  }

 private:
  template <int... I>
  void add_gradients(std::integer_sequence<int, I...>) {
    const auto of = [this]<int J>() {
      if (wants<J>())
        add_gradient(sources_[J], derivative<J>(gradient_, [&]<int K>() -> auto& { return operand<K>(); }, result_));
    };
    (of.template operator()<I>(), ...);
  }

  template <int I>
  auto& state_of() const {
    using K = bare<decltype(kept_.template get<I>())>;
    return static_cast<typed_state<typename K::value_type, K::rank, D>&>(*sources_[I]);
  }
  template <int... I>
  void move_gradients(std::integer_sequence<int, I...>) {
    const auto move = [this]<int At>() {
      if constexpr (Op::takes(At) != ops::take::strided) {
        const auto& late = late_.template get<At>();
        if (late.to.defined()) write_or_add(late.to, state_of<At>().grad, late.add);
      }
    };
    (move.template operator()<I>(), ...);
  }

  tensor<T, R, D> gradient_, result_;
  std::uint64_t version_ = 0;
  pack<Kept...> kept_;
  /// What goes to gradients that lie in another order.
  mutable pack<gradient_place<tensor<typename Kept::value_type, Kept::rank, D>>...> late_;
  state_ptr sources_[static_cast<unsigned>(differentiable)];
};

}  // namespace detail
}  // namespace sinter
