// sinter/grad/kernel_graph.hpp: the tape entry of an op with a kernel of its own whose gradient can be differentiated.
#pragma once

#include "sinter/grad/kernel_backward.hpp"
#include "sinter/grad/second_order.hpp"

namespace sinter::detail {

/// Entry is the kernel_backward of operands A. It keeps them as variables of order 1, of which op.grad<I> makes the
/// gradient of operand I as an expression.
template <class Entry, class... A>
struct kernel_graph_backward final : Entry {
  template <class Op, class Saved>
  kernel_graph_backward(const Op& what, const Saved& by_forward, const pack<A...>& operands)
      : Entry(what, by_forward), low_(operands.apply([](const auto&... a) { return make_pack(lower_order(a)...); })) {}

  void release() override {
    Entry::release();
    low_.reset();
  }
  void backward_graph(const state_ptr& y, graph_gradients& to) override {
    add_gradients(y, to, std::make_integer_sequence<int, Entry::differentiable>());
  }

 private:
  template <int... I>
  void add_gradients(const state_ptr& y, graph_gradients& to, std::integer_sequence<int, I...>) {
    const auto g = to.get<typename Entry::value_type, Entry::rank, typename Entry::device_type>(y);
    (add_gradient_of<I>(g, y, to), ...);
  }
  template <int I, class G>
  void add_gradient_of(const G& g, const state_ptr& y, graph_gradients& to) {
    if constexpr (bare<decltype(std::declval<pack<A...>&>().template get<I>())>::order >= 2) {
      if (!this->template wants<I>()) return;
      const auto operand = [this]<int K>() -> auto& {
        static_cast<void>(this->template operand<K>());  // throws if it was written to
        return low_->template get<K>();
      };
      if constexpr (Entry::reads_result)
        to.add(this->template source<I>(),
               this->template derivative<I>(g, operand, access::make_variable<1>(this->result(), y)));
      else to.add(this->template source<I>(), this->template derivative<I>(g, operand, kernel::unneeded()));
    }
  }

  std::optional<pack<lower_order_of<A>...>> low_;
};

}  // namespace sinter::detail
