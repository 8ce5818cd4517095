// sinter/cpu/stock.hpp: the statements of ready-made layers and losses, of floats on the cpu; see expr/stock.hpp.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/ops.hpp"

#if SINTER_COMPILED
namespace sinter::detail::stock {

template <int R>
using plain = tensor<float, R>;
template <int R>
using tracked = variable<float, R>;
using labels = tensor<std::int64_t, 1>;
using number = constant_expr<float>;

template <class X>
using relu = map_expr<ops::relu_op, X>;
template <class X>
using gelu = map_expr<ops::gelu_op, X>;
template <class X>
using silu = map_expr<ops::silu_op, X>;
template <class X>
using sigmoid = map_expr<ops::sigmoid_op, X>;
template <class X>
using tanh = map_expr<ops::tanh_op, X>;
template <class X>
using square = map_expr<ops::square_op, X>;
template <class X>
using rsqrt = map_expr<ops::rsqrt_op, X>;
template <class T, class X>
using cast = map_expr<ops::cast_op<T, element_of<X>>, X>;
template <class X, class Y>
using equal = map_expr<ops::equal_op, X, Y>;
/// X, which has rank R, over its last Axes axes; 0: over all.
template <class Op, int R, int Axes, class X>
using reduction = kernel_expr<ops::reduce_op<Op, R, Axes>, X>;
template <class A, class B>
using sum = map_expr<ops::add_op, A, B>;
template <class A, class B>
using product = map_expr<ops::multiply_op, A, B>;
template <class A, class B>
using difference = map_expr<ops::subtract_op, A, B>;
template <class Y, class E>
using write = assignment<const Y&, E>;

template <int N, class X, template <int> class W>
using conv_without_bias = kernel_expr<ops::conv_op<N, false>, X, W<N + 2>>;
template <int N, class X, template <int> class W>
using conv = kernel_expr<ops::conv_op<N, true>, X, W<N + 2>, W<1>>;
template <class X, template <int> class W>
using product_with = kernel_expr<ops::linear_op, X, W<2>>;
template <class X, template <int> class W>
using linear = sum<product_with<X, W>, W<1>>;
/// X of rank R, its channels scaled and shifted.
template <int R, class X, template <int> class W>
using norm = sum<product<difference<X, plain<R - 1>>, W<R - 1>>, W<R - 1>>;
template <int N, class X>
using max_pool = kernel_expr<ops::max_pool_op<N, ops::sliding_window<N>>, X>;
template <int N, class X>
using avg_pool = kernel_expr<ops::avg_pool_op<N, ops::sliding_window<N>>, X>;
template <class X>
using global_avg_pool = kernel_expr<ops::avg_pool_op<2, ops::adaptive_window<2>>, X>;
/// A normalised X, scaled and shifted by weights of rank R.
template <class Op, class X, int R, template <int> class W>
using affine = sum<product<kernel_expr<Op, X>, W<R>>, W<R>>;
/// What backward of a batch norm of rank R adds to the gradient of its input.
template <int R>
using moments_gradient = sum<plain<R - 1>, product<plain<R - 1>, difference<plain<R>, plain<R - 1>>>>;
/// Of a convolution that reads it as it computes, and keeps nothing of it for backward.
template <class X>
using again = map_expr<ops::computed_again_op<float>, X>;
template <class X>
using mse = reduction<ops::mean_op, 2, 0, square<difference<X, plain<2>>>>;
template <class X>
using bce = reduction<ops::mean_op, 2, 0,
                      difference<product<difference<number, plain<2>>, X>, map_expr<ops::log_sigmoid_op, X>>>;
template <class X>
using classification = kernel_expr<ops::cross_entropy_op, X, labels>;
/// Ids of rank R.
template <int R, class X>
using lookup = kernel_expr<ops::embedding_op, X, tensor<std::int64_t, R>>;
template <class X>
using bag = kernel_expr<ops::embedding_bag_op, X, labels>;
template <class X, class W>
using weighted_bag = kernel_expr<ops::weighted_embedding_bag_op, X, W, labels>;

}  // namespace sinter::detail::stock

namespace sinter::detail {

// In each table X are inputs and W weights: plain ones in inference, tracked ones in training, where the first layer
// has a plain input.

// Convolutions and pooling.
#if SINTER_STOCK_PART == 1 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_LINE SINTER_STOCK_MADE
#else
#define SINTER_STOCK_LINE SINTER_STOCK
#endif
#define SINTER_STOCK_TABLE(X, W)                          \
  SINTER_STOCK_LINE(stock::conv<2, X<4>, W>)              \
  SINTER_STOCK_LINE(stock::relu<stock::conv<2, X<4>, W>>) \
  SINTER_STOCK_LINE(stock::conv_without_bias<2, X<4>, W>)
SINTER_STOCK_TABLE(stock::plain, stock::tracked)
SINTER_STOCK_TABLE(stock::tracked, stock::tracked)
SINTER_STOCK_TABLE(stock::plain, stock::plain)
#undef SINTER_STOCK_TABLE
#define SINTER_STOCK_TABLE(X)                                                             \
  SINTER_STOCK_LINE(stock::again<stock::relu<stock::norm<4, X<4>, X>>>)                   \
  SINTER_STOCK_LINE(stock::conv_without_bias<2, stock::relu<stock::norm<4, X<4>, X>>, X>) \
  SINTER_STOCK_LINE(stock::conv_without_bias<2, stock::again<stock::relu<stock::norm<4, X<4>, X>>>, X>)
SINTER_STOCK_TABLE(stock::plain)
SINTER_STOCK_TABLE(stock::tracked)
#undef SINTER_STOCK_TABLE
#define SINTER_STOCK_TABLE(X)                              \
  SINTER_STOCK_LINE(kernel_expr<ops::pad_op<float>, X<4>>) \
  SINTER_STOCK_LINE(stock::max_pool<2, X<4>>)              \
  SINTER_STOCK_LINE(stock::avg_pool<2, X<4>>)              \
  SINTER_STOCK_LINE(stock::global_avg_pool<X<4>>)
SINTER_STOCK_TABLE(stock::plain)
SINTER_STOCK_TABLE(stock::tracked)
#undef SINTER_STOCK_TABLE
#undef SINTER_STOCK_LINE

// Norms.
#if SINTER_STOCK_PART == 2 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_LINE SINTER_STOCK_MADE
#define SINTER_STOCK_FUNCTION template
#else
#define SINTER_STOCK_LINE SINTER_STOCK
#define SINTER_STOCK_FUNCTION extern template
#endif
#define SINTER_STOCK_TABLE(X)                                                                                    \
  SINTER_STOCK_LINE(kernel_expr<ops::batch_moments_op, X<4>>)                                                    \
  SINTER_STOCK_LINE(stock::rsqrt<stock::sum<X<1>, stock::number>>)                                               \
  SINTER_STOCK_LINE(stock::product<X<1>, X<1>>)                                                                  \
  SINTER_STOCK_LINE(stock::sum<stock::product<stock::plain<1>, stock::difference<stock::plain<1>, X<1>>>, X<1>>) \
  SINTER_STOCK_LINE(stock::norm<4, X<4>, X>)                                                                     \
  SINTER_STOCK_LINE(stock::relu<stock::norm<4, X<4>, X>>)                                                        \
  SINTER_STOCK_LINE(stock::relu<stock::sum<stock::norm<4, X<4>, X>, X<4>>>)                                      \
  SINTER_STOCK_LINE(stock::relu<stock::sum<stock::norm<4, X<4>, X>, stock::norm<4, X<4>, X>>>)
SINTER_STOCK_TABLE(stock::plain)
SINTER_STOCK_TABLE(stock::tracked)
#undef SINTER_STOCK_TABLE
#undef SINTER_STOCK_LINE
SINTER_STOCK_FUNCTION void move_running<float, cpu>(const stock::plain<1>&, const stock::plain<1>&,
                                                    const stock::plain<2>&, double, index_t);
#define SINTER_STOCK_TABLE(X, V, W)                                                                        \
  SINTER_STOCK_FUNCTION normalised<X<4>, V<1>, W<1>, W<1>> batch_norm_of(                                  \
      const X<4>&, const stock::plain<1>&, const stock::plain<1>&, const batch_norm_options&, const W<1>&, \
      const W<1>&);
SINTER_STOCK_TABLE(stock::plain, stock::plain, stock::plain)
SINTER_STOCK_TABLE(stock::plain, stock::plain, stock::tracked)
SINTER_STOCK_TABLE(stock::tracked, stock::tracked, stock::tracked)
#undef SINTER_STOCK_TABLE
#undef SINTER_STOCK_FUNCTION

// Layers for lines: convolutions and pooling of one dimension, and batch norm of lines and of rows.
#if SINTER_STOCK_PART == 5 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_LINE SINTER_STOCK_MADE
#define SINTER_STOCK_FUNCTION template
#else
#define SINTER_STOCK_LINE SINTER_STOCK
#define SINTER_STOCK_FUNCTION extern template
#endif
#define SINTER_STOCK_TABLE(X, W)                          \
  SINTER_STOCK_LINE(stock::conv<1, X<3>, W>)              \
  SINTER_STOCK_LINE(stock::relu<stock::conv<1, X<3>, W>>) \
  SINTER_STOCK_LINE(stock::conv_without_bias<1, X<3>, W>)
SINTER_STOCK_TABLE(stock::plain, stock::tracked)
SINTER_STOCK_TABLE(stock::tracked, stock::tracked)
SINTER_STOCK_TABLE(stock::plain, stock::plain)
#undef SINTER_STOCK_TABLE
#define SINTER_STOCK_TABLE(X)                                 \
  SINTER_STOCK_LINE(kernel_expr<ops::pad_op<float>, X<3>>)    \
  SINTER_STOCK_LINE(stock::max_pool<1, X<3>>)                 \
  SINTER_STOCK_LINE(stock::avg_pool<1, X<3>>)                 \
  SINTER_STOCK_LINE(kernel_expr<ops::batch_moments_op, X<2>>) \
  SINTER_STOCK_LINE(kernel_expr<ops::batch_moments_op, X<3>>) \
  SINTER_STOCK_LINE(stock::norm<2, X<2>, X>)                  \
  SINTER_STOCK_LINE(stock::norm<3, X<3>, X>)                  \
  SINTER_STOCK_LINE(stock::relu<stock::norm<2, X<2>, X>>)     \
  SINTER_STOCK_LINE(stock::relu<stock::norm<3, X<3>, X>>)
SINTER_STOCK_TABLE(stock::plain)
SINTER_STOCK_TABLE(stock::tracked)
#undef SINTER_STOCK_TABLE
SINTER_STOCK_LINE(stock::reduction<ops::sum_op, 3, 1, stock::plain<3>>)
SINTER_STOCK_LINE(stock::write<stock::plain<2>, stock::moments_gradient<2>>)
SINTER_STOCK_LINE(stock::write<stock::plain<3>, stock::moments_gradient<3>>)
SINTER_STOCK_LINE(stock::write<stock::plain<2>, stock::sum<stock::plain<2>, stock::moments_gradient<2>>>)
SINTER_STOCK_LINE(stock::write<stock::plain<3>, stock::sum<stock::plain<3>, stock::moments_gradient<3>>>)
#undef SINTER_STOCK_LINE
#define SINTER_STOCK_TABLE(R, X, V, W)                                                                     \
  SINTER_STOCK_FUNCTION normalised<X<R>, V<1>, W<1>, W<1>> batch_norm_of(                                  \
      const X<R>&, const stock::plain<1>&, const stock::plain<1>&, const batch_norm_options&, const W<1>&, \
      const W<1>&);
SINTER_STOCK_TABLE(2, stock::plain, stock::plain, stock::plain)
SINTER_STOCK_TABLE(2, stock::plain, stock::plain, stock::tracked)
SINTER_STOCK_TABLE(2, stock::tracked, stock::tracked, stock::tracked)
SINTER_STOCK_TABLE(3, stock::plain, stock::plain, stock::plain)
SINTER_STOCK_TABLE(3, stock::plain, stock::plain, stock::tracked)
SINTER_STOCK_TABLE(3, stock::tracked, stock::tracked, stock::tracked)
#undef SINTER_STOCK_TABLE
#undef SINTER_STOCK_FUNCTION

// Norms of groups and of layers, resampling, embeddings, and other activations of convolutions. Dropout is in
// random/instances.hpp.
#if SINTER_STOCK_PART == 6 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_LINE SINTER_STOCK_MADE
#else
#define SINTER_STOCK_LINE SINTER_STOCK
#endif
#define SINTER_STOCK_TABLE(X)                                                   \
  SINTER_STOCK_LINE(kernel_expr<ops::group_norm_op, X<4>>)                      \
  SINTER_STOCK_LINE(stock::affine<ops::group_norm_op, X<4>, 3, X>)              \
  SINTER_STOCK_LINE(stock::relu<stock::affine<ops::group_norm_op, X<4>, 3, X>>) \
  SINTER_STOCK_LINE(stock::silu<stock::affine<ops::group_norm_op, X<4>, 3, X>>) \
  SINTER_STOCK_LINE(kernel_expr<ops::layer_norm_op, X<2>>)                      \
  SINTER_STOCK_LINE(kernel_expr<ops::layer_norm_op, X<3>>)                      \
  SINTER_STOCK_LINE(stock::affine<ops::layer_norm_op, X<2>, 1, X>)              \
  SINTER_STOCK_LINE(stock::affine<ops::layer_norm_op, X<3>, 1, X>)              \
  SINTER_STOCK_LINE(stock::relu<stock::affine<ops::layer_norm_op, X<2>, 1, X>>) \
  SINTER_STOCK_LINE(kernel_expr<ops::interpolate_op, X<4>>)                     \
  SINTER_STOCK_LINE(stock::lookup<1, X<2>>)                                     \
  SINTER_STOCK_LINE(stock::lookup<2, X<2>>)                                     \
  SINTER_STOCK_LINE(stock::bag<X<2>>)                                           \
  SINTER_STOCK_LINE(stock::weighted_bag<X<2>, X<1>>)                            \
  SINTER_STOCK_LINE(stock::gelu<stock::conv<2, X<4>, X>>)                       \
  SINTER_STOCK_LINE(stock::silu<stock::conv<2, X<4>, X>>)                       \
  SINTER_STOCK_LINE(stock::tanh<stock::conv<2, X<4>, X>>)                       \
  SINTER_STOCK_LINE(stock::relu<X<2>>)                                          \
  SINTER_STOCK_LINE(stock::relu<X<3>>)                                          \
  SINTER_STOCK_LINE(stock::relu<X<4>>)                                          \
  SINTER_STOCK_LINE(stock::sum<X<0>, X<0>>)
SINTER_STOCK_TABLE(stock::plain)
SINTER_STOCK_TABLE(stock::tracked)
#undef SINTER_STOCK_TABLE
#undef SINTER_STOCK_LINE

// Dense layers, losses, and what a backward pass writes.
#if SINTER_STOCK_PART == 3 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_LINE SINTER_STOCK_MADE
#else
#define SINTER_STOCK_LINE SINTER_STOCK
#endif
#define SINTER_STOCK_TABLE(X, W)                            \
  SINTER_STOCK_LINE(stock::product_with<X<2>, W>)           \
  SINTER_STOCK_LINE(stock::linear<X<2>, W>)                 \
  SINTER_STOCK_LINE(stock::relu<stock::linear<X<2>, W>>)    \
  SINTER_STOCK_LINE(stock::gelu<stock::linear<X<2>, W>>)    \
  SINTER_STOCK_LINE(stock::silu<stock::linear<X<2>, W>>)    \
  SINTER_STOCK_LINE(stock::sigmoid<stock::linear<X<2>, W>>) \
  SINTER_STOCK_LINE(stock::tanh<stock::linear<X<2>, W>>)
SINTER_STOCK_TABLE(stock::plain, stock::tracked)
SINTER_STOCK_TABLE(stock::tracked, stock::tracked)
SINTER_STOCK_TABLE(stock::plain, stock::plain)
#undef SINTER_STOCK_TABLE
#define SINTER_STOCK_TABLE(X)                                                          \
  SINTER_STOCK_LINE(stock::classification<X<2>>)                                       \
  SINTER_STOCK_LINE(stock::reduction<ops::mean_op, 1, 0, stock::classification<X<2>>>) \
  SINTER_STOCK_LINE(stock::reduction<ops::sum_op, 1, 0, stock::classification<X<2>>>)  \
  SINTER_STOCK_LINE(stock::mse<X<2>>)                                                  \
  SINTER_STOCK_LINE(stock::mse<stock::linear<stock::plain<2>, X>>)                     \
  SINTER_STOCK_LINE(stock::bce<X<2>>)                                                  \
  SINTER_STOCK_LINE(stock::bce<stock::linear<stock::plain<2>, X>>)                     \
  SINTER_STOCK_LINE(stock::reduction<ops::mean_op, 4, 2, X<4>>)                        \
  SINTER_STOCK_LINE(stock::reduction<ops::mean_op, 2, 0, X<2>>)                        \
  SINTER_STOCK_LINE(stock::reduction<ops::sum_op, 1, 0, X<1>>)                         \
  SINTER_STOCK_LINE(stock::reduction<ops::sum_op, 2, 0, X<2>>)                         \
  SINTER_STOCK_LINE(kernel_expr<ops::softmax_op, X<2>>)                                \
  SINTER_STOCK_LINE(kernel_expr<ops::log_softmax_op, X<2>>)
SINTER_STOCK_TABLE(stock::plain)
SINTER_STOCK_TABLE(stock::tracked)
#undef SINTER_STOCK_TABLE
SINTER_STOCK_LINE(stock::mse<stock::linear<stock::tracked<2>, stock::tracked>>)
SINTER_STOCK_LINE(stock::bce<stock::linear<stock::tracked<2>, stock::tracked>>)
#define SINTER_STOCK_TABLE(R)                                       \
  SINTER_STOCK_LINE(stock::write<stock::plain<R>, stock::plain<R>>) \
  SINTER_STOCK_LINE(stock::write<stock::plain<R>, stock::number>)   \
  SINTER_STOCK_LINE(stock::write<stock::plain<R>, stock::sum<stock::plain<R>, stock::plain<R>>>)
SINTER_STOCK_TABLE(0)
SINTER_STOCK_TABLE(1)
SINTER_STOCK_TABLE(2)
SINTER_STOCK_TABLE(3)
SINTER_STOCK_TABLE(4)
#undef SINTER_STOCK_TABLE
#undef SINTER_STOCK_LINE

// Data: batches of samples, pictures as numbers, what was predicted right.
#if SINTER_STOCK_PART == 4 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_LINE SINTER_STOCK_MADE
#else
#define SINTER_STOCK_LINE SINTER_STOCK
#endif
#define SINTER_STOCK_TABLE(T, R) SINTER_STOCK_LINE(kernel_expr<ops::gather_op, tensor<T, R>, tensor<std::int64_t, R>>)
SINTER_STOCK_TABLE(float, 1)
SINTER_STOCK_TABLE(float, 2)
SINTER_STOCK_TABLE(float, 3)
SINTER_STOCK_TABLE(float, 4)
SINTER_STOCK_TABLE(std::int64_t, 1)
SINTER_STOCK_TABLE(std::uint8_t, 4)
#undef SINTER_STOCK_TABLE
#define SINTER_STOCK_TABLE(R)                                                 \
  SINTER_STOCK_LINE(map_expr<ops::divide_op, stock::plain<R>, stock::number>) \
  SINTER_STOCK_LINE(map_expr<ops::divide_op, stock::cast<float, tensor<std::uint8_t, R>>, stock::number>)
SINTER_STOCK_TABLE(2)
SINTER_STOCK_TABLE(3)
SINTER_STOCK_TABLE(4)
#undef SINTER_STOCK_TABLE
SINTER_STOCK_LINE(stock::cast<std::int64_t, stock::plain<1>>)
SINTER_STOCK_LINE(stock::cast<std::int64_t, tensor<std::uint8_t, 1>>)
SINTER_STOCK_LINE(stock::cast<std::int64_t, tensor<std::int32_t, 1>>)
SINTER_STOCK_LINE(stock::cast<std::int64_t, tensor<std::int32_t, 2>>)
SINTER_STOCK_LINE(stock::reduction<ops::argmax_op, 2, 1, stock::plain<2>>)
SINTER_STOCK_LINE(stock::reduction<ops::argmax_op, 2, 1, stock::linear<stock::plain<2>, stock::plain>>)
SINTER_STOCK_LINE(stock::reduction<ops::mean_op, 1, 0, stock::cast<float, stock::equal<stock::labels, stock::labels>>>)
SINTER_STOCK_LINE(stock::reduction<ops::mean_op, 1, 0, stock::cast<double, stock::equal<stock::labels, stock::labels>>>)
SINTER_STOCK_LINE(stock::write<stock::labels, stock::labels>)
// Counters of batches.
SINTER_STOCK_LINE(stock::write<tensor<std::int64_t, 0>, constant_expr<std::int64_t>>)
SINTER_STOCK_LINE(stock::write<tensor<std::int64_t, 0>, tensor<std::int64_t, 0>>)
SINTER_STOCK_LINE(
    stock::write<tensor<std::int64_t, 0>, stock::sum<tensor<std::int64_t, 0>, constant_expr<std::int64_t>>>)
#undef SINTER_STOCK_LINE

}  // namespace sinter::detail
#endif
