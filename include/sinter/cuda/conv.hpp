// sinter/cuda/conv.hpp: conv1d, conv2d, conv3d and their transposes on GPUs; conv_products.hpp says how.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/conv_products.hpp"
#include "sinter/ops/conv_transpose.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter::detail {

/// What is the gradient of x for a convolution is the result of a transposed one, and the other way round.
template <ops::is_convolution Op, device D>
  requires is_cuda_v<D>
struct kernels<Op, D> {
  template <class T>
  using images = tensor<T, Op::rank_of_images, D>;

  template <class T, class Epilogue, class... B>
  static void forward(const Op& op, const images<T>& y, const Epilogue* after, const images<T>& x, const images<T>& w,
                      const B&... bias) {
    const auto e = op.extents_of(x.shape(), w.shape(), w.strides(), y.shape());
    bool done = false;
    const auto run = [&](const T* b) {
      done = cuda_impl::convolution<T, D>({Op::name, y.shape()}, e)
                 .pass(Op::transposed, access::data(x), access::data(w), b, access::data(y), false, is_relu(after));
    };
    if constexpr (sizeof...(B) > 0) [&](const auto& b) { run(access::data(b.contiguous())); }(bias...);
    else run(nullptr);
    if (after != nullptr && !done) after->run();
  }

  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    const auto& g = b.gradient();
    using T = element_of<decltype(g)>;
    if (b.template wants<0>()) {
      const auto dx = b.template place_of<0>();
      const images<T>& w = b.template operand<1>();
      cuda_impl::convolution<T, D>({"data gradient of a convolution", dx.to.shape()},
                                   op.extents_of(dx.to.shape(), w.shape(), w.strides(), g.shape()))
          .pass(!Op::transposed, access::data(g), access::data(w), nullptr, access::data(dx.to), dx.add, false);
    }
    if (b.template wants<1>()) {
      const auto dw = b.template place_of<1>();
      const images<T>& x = b.template operand<0>();
      const images<T>&image = Op::transposed ? g : x, &result = Op::transposed ? x : g;
      cuda_impl::convolution<T, D>({"weight gradient of a convolution", dw.to.shape()},
                                   op.extents_of(x.shape(), dw.to.shape(), dw.to.strides(), g.shape()))
          .weight_gradient(access::data(image), access::data(result), access::data(dw.to), dw.add);
    }
    if constexpr (Op::has_bias) {
      if (b.template wants<2>()) {
        const auto db = b.template place_of<2>();
        index_t axes[std::size_t{Op::rank_of_images - 1}] = {0};
        for (int d = 1; d < Op::rank_of_images - 1; ++d) axes[d] = d + 1;
        using To = bare<decltype(db.to)>;
        if (db.add) To(db.to) += sum(g, axes);
        else write(eval(sum(g, axes)), db.to);
      }
    }
  }

 private:
  /// Is the work that follows relu, and nothing else? No bias has -1 columns, so tail() takes none for one.
  template <class Epilogue>
  static bool is_relu(const Epilogue* after) {
    return after != nullptr && after->tail(-1).act == cuda_impl::product_tail::activation::relu;
  }
};

}  // namespace sinter::detail
