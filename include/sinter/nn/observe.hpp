// sinter/nn/observe.hpp: reports the calls of modules and their results to summary() while it runs a model.
#pragma once

#include "sinter/nn/place.hpp"

namespace sinter::nn::detail {

/// Told of every call of a module on this thread while it is in call_observer_now().
struct call_observer {
  virtual void called(const void* module, const void* mark, sinter::detail::shape_piece output,
                      index_t multiply_adds) = 0;

 protected:
  ~call_observer() = default;
};

inline call_observer*& call_observer_now() {
  static thread_local call_observer* observer = nullptr;
  return observer;
}

template <class M, class Y>
SINTER_COLD void tell_observer(const M& m, const Y& y) {
  const auto shape = y.shape();
  index_t multiply_adds = 0;
  if constexpr (requires { m.multiply_adds(shape); }) multiply_adds = m.multiply_adds(shape);
  call_observer_now()->called(&m, &code_of<M>, {shape.data(), Y::rank}, multiply_adds);
}

}  // namespace sinter::nn::detail
