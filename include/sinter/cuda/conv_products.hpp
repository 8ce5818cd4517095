// sinter/cuda/conv_products.hpp: convolutions on GPUs as patches in chunks and matrix products, channel by channel
// where groups have one, or by a library.
//
// The rule. A convolution of one tap, without strides and padding, is one product. One whose groups have one channel
// goes to the kernels of conv_channelwise.hpp. All others go to the library, if there is one and it takes them, and
// else to patches and products. A chunk of patches is a part of the rows of their matrix, which never is whole.
#pragma once

#include <atomic>
#include <vector>

#include "sinter/cuda/conv_channelwise.hpp"
#include "sinter/cuda/conv_library.hpp"
#include "sinter/cuda/product.hpp"

namespace sinter::cuda_impl {

/// Bytes of a chunk of patches, and of results that are moved afterwards, at most; a row may take more.
inline std::atomic<std::size_t> most_patch_bytes{std::size_t{64} << 20};

/// The rows of chunks of about one size.
struct conv_chunks {
  index_t rows, each;
  conv_chunks(index_t all, index_t row_bytes) : rows(all) {
    constexpr index_t tile = 128;  // of products
    const auto room = static_cast<index_t>(most_patch_bytes.load(std::memory_order_relaxed));
    index_t most = std::max<index_t>(room / row_bytes, 1);
    if (most > tile) most = most / tile * tile;
    const index_t chunks = std::max<index_t>((rows + most - 1) / most, 1), equal = (rows + chunks - 1) / chunks;
    each = most < tile ? equal : std::min(rows, (equal + tile - 1) / tile * tile);
  }
  template <class F>
  void each_chunk(const F& f) const {
    for (index_t first = 0; first < rows; first += each) f(first, std::min(each, rows - first));
  }
};

/// f(integral_constant): Lanes elements of T at a time, where `count` neighbours at each of the pointers can be read
/// so.
template <class T, class F, class... P>
void with_lanes(index_t count, const F& f, const P*... at) {
  constexpr int lanes = static_cast<int>(16 / sizeof(T));
  const bool aligned = ((reinterpret_cast<std::uintptr_t>(at) % 16 == 0) && ...);
  if (count % lanes == 0 && aligned) f(std::integral_constant<int, lanes>());
  else f(std::integral_constant<int, 1>());
}

/// A convolution of elements T on D. Images and results have their channels last.
template <class T, device D>
class convolution {
  using C = compute_type<T>;
  using temporary = sinter::detail::temporary<D>;

 public:
  convolution(const work& what, const conv_extents& e) : what_(what), e_(e) {}

  /// to = the results, or the gradient of the images where `back` is set, or is increased by it. Where possible relu is
  /// applied too, if `relu` asks for it; the return value says so.
  bool pass(bool back, const T* from, const T* w, const T* bias, T* to, bool add, bool relu) const {
    const conv_part forward = forward_part(e_);
    if (is_channelwise()) {
      each_part(back, [&](const conv_part& part) { channelwise(part, back, from, w, bias, to, add); });
      return false;
    }
    if (!forward.is_identity()) {
      library_convolution asked{back ? library_convolution::pass::data : library_convolution::pass::forward, e_, add};
      asked.has_bias = bias != nullptr;
      asked.relu = relu && bias != nullptr;
      asked.bias = bias;
      (back ? asked.result : asked.image) = const_cast<T*>(from);
      (back ? asked.image : asked.result) = to;
      if (!(back && bias != nullptr) && takes(asked) && convolve(asked, w)) return asked.relu;
    }
    bool done = relu;
    each_part(back, [&](const conv_part& part) { done &= multiply_patches(part, back, from, w, bias, to, add, relu); });
    return done;
  }

  /// dw (+)= the gradient of the weights, for images x and the gradient dy of the results.
  void weight_gradient(const T* x, const T* dy, T* dw, bool add) const {
    const conv_part part = forward_part(e_);
    if (is_channelwise()) return channelwise_weights(part, x, dy, dw, add);
    library_convolution asked{library_convolution::pass::weights, e_, false};
    asked.image = const_cast<T*>(x);
    asked.result = const_cast<T*>(dy);
    if (!part.is_identity() && takes(asked)) {
      const weight_matrix weights = weights_of_results(e_, part, false, 1);
      const temporary packed(static_cast<std::size_t>(weights.numel()) * sizeof(T));
      asked.weights = packed.data();
      if (gpu<D>::convolutions().template run<T>(asked))
        return launch_each<D>(what_, unpack_weights_body<T, T>{weights, static_cast<const T*>(packed.data()), dw, add});
    }
    multiply_for_weights(part, x, dy, dw, add);
  }

 private:
  bool is_channelwise() const { return e_.groups > 1 && e_.groups == e_.channels; }
  template <class F>
  void each_part(bool back, const F& f) const {
    if (back) each_data_part(e_, f);
    else f(forward_part(e_));
  }
  /// Elements that rows of patches are a multiple of, so that products read 16 bytes at a time.
  static constexpr index_t row_alignment = 16 / static_cast<index_t>(sizeof(T));
  static matrix_ref matrix(const void* data, index_t rows, index_t columns, index_t row_stride, index_t column_stride,
                           index_t batches, index_t batch_stride) {
    return {const_cast<void*>(data), rows, columns, row_stride, column_stride, batches, batch_stride};
  }

  bool takes(const library_convolution& asked) const {
    return e_.batch * e_.channels * e_.filters > 0 && asked.is_aligned() &&
           gpu<D>::convolutions().template takes<T>(asked);
  }
  bool convolve(library_convolution asked, const T* w) const {
    const weight_matrix weights = weights_of_results(e_, forward_part(e_), false, 1);
    const bool as_they_are = weights.column_stride() == 1 && weights.rows.stride == weights.width &&
                             reinterpret_cast<std::uintptr_t>(w) % 16 == 0;
    const temporary packed(as_they_are ? 0 : static_cast<std::size_t>(weights.numel()) * sizeof(T));
    if (!as_they_are) launch_each<D>(what_, pack_weights_body<T>{weights, w, static_cast<T*>(packed.data())});
    asked.weights = as_they_are ? const_cast<T*>(w) : packed.data();
    return gpu<D>::convolutions().template run<T>(asked);
  }

  void channelwise(const conv_part& part, bool back, const T* from, const T* w, const T* bias, T* to, bool add) const {
    const weight_matrix weights = weights_of_taps(e_, part);
    const temporary packed(static_cast<std::size_t>(weights.numel()) * sizeof(T));
    T* const w_packed = static_cast<T*>(packed.data());
    launch_each<D>(what_, pack_weights_body<T>{weights, w, w_packed});
    const index_t together = e_.filters == e_.channels ? e_.channels : 1;
    with_lanes<T>(
        together,
        [&](auto lanes) {
          launch_each<D>(what_,
                         channelwise_body<T, decltype(lanes)::value>(e_, part, back, from, w_packed, bias, to, add));
        },
        from, w_packed, to);
  }
  void channelwise_weights(const conv_part& part, const T* x, const T* dy, T* dw, bool add) const {
    if (e_.filters == 0) return;
    const index_t together = e_.filters == e_.channels ? e_.channels : 1;
    with_lanes<T>(
        together,
        [&](auto lanes) {
          channelwise_sums_body<T, decltype(lanes)::value> body(e_, part, x, dy);
          const temporary sums(body.bytes());
          body.sums = static_cast<C*>(sums.data());
          if (body.parts > 0) launch_on<D>(what_, body, body.launch());
          launch_each<D>(what_, channelwise_weights_body<T>{weights_of_taps(e_, part), body.sums, dw, body.parts, add});
        },
        x, dy);
  }

  /// Patches of `from` for rows [first, first + rows), in `memory`.
  void copy_patches(const conv_part& part, bool back, index_t width, const T* from, T* memory, index_t first,
                    index_t rows) const {
    with_lanes<T>((back ? e_.filters : e_.channels) / e_.groups,
                  [&](auto lanes) {
                    launch_each<D>(what_, patches_body<T, decltype(lanes)::value>(e_, part, back, width, from, memory,
                                                                                  first, rows));
                  },
                  from, memory);
  }
  void place_results(const conv_part& part, bool back, const T* from, const T* bias, T* to, index_t first, index_t rows,
                     bool add) const {
    const index_t channels = back ? e_.channels : e_.filters;
    with_lanes<T>(
        channels,
        [&](auto lanes) {
          constexpr int n = decltype(lanes)::value;
          launch_each<D>(what_, place_results_body<T, n>{{part, e_.batch * part.pixels()},
                                                         {channels / n, rows * (channels / n)},
                                                         from,
                                                         bias,
                                                         to,
                                                         first,
                                                         rows,
                                                         channels,
                                                         add});
        },
        from, to);
  }

  /// Patches times weights, for the results of one part; true if that applied relu.
  bool multiply_patches(const conv_part& part, bool back, const T* from, const T* w, const T* bias, T* to, bool add,
                        bool relu) const {
    const index_t channels = back ? e_.channels : e_.filters, reads = back ? e_.filters : e_.channels;
    const index_t rows = e_.batch * part.pixels(), each = channels / e_.groups, each_reads = reads / e_.groups;
    if (rows * channels == 0) return true;
    if (part.taps() * reads == 0) {
      if (!add || bias != nullptr) place_results(part, back, nullptr, bias, to, 0, rows, add);
      return false;
    }
    const bool copied = !part.is_identity();
    const weight_matrix weights = weights_of_results(e_, part, back, copied ? row_alignment : 1);
    const index_t width = weights.width, groups = e_.groups;
    const index_t stride = weights.column_stride();
    matrix_ref right =
        matrix(w + weights.origin, width, each, stride, weights.rows.stride, groups, weights.groups.stride);
    const bool packs = stride == 0 || !column_major(right).fits;
    const temporary packed(packs ? static_cast<std::size_t>(weights.numel()) * sizeof(T) : 0);
    if (packs) {
      launch_each<D>(what_, pack_weights_body<T>{weights, w, static_cast<T*>(packed.data())});
      right = matrix(packed.data(), width, each, 1, width, groups, each * width);
    }
    constexpr auto size = static_cast<index_t>(sizeof(T));
    const bool apart = !part.is_whole();
    const index_t row_elements = std::max(copied ? groups * width : 0, apart ? channels : 0);
    const conv_chunks chunks(rows, std::max<index_t>(row_elements * size, 1));
    const auto bytes_of = [&](bool wanted, index_t elements) {
      return wanted ? static_cast<std::size_t>(chunks.each * elements * size) : 0;
    };
    const temporary patches(bytes_of(copied, groups * width)), results(bytes_of(apart, channels));
    bool done = relu && !apart;
    chunks.each_chunk([&](index_t first, index_t count) {
      const T* left = from + first * reads;
      if (copied) {
        left = static_cast<const T*>(patches.data());
        copy_patches(part, back, width, from, static_cast<T*>(patches.data()), first, count);
      }
      T* const out = apart ? static_cast<T*>(results.data()) : to + first * channels;
      const matrix_ref a = copied ? matrix(left, count, width, width, 1, groups, count * width)
                                  : matrix(left, count, width, reads, 1, groups, each_reads);
      const matrix_ref c = matrix(out, count, each, channels, 1, groups, each);
      if (!apart && multiply_with_tail(a, right, c, bias, relu, add)) return;
      done = false;
      multiply<T, D>(a, right, c, add && !apart);
      if (apart) place_results(part, back, out, bias, to, first, count, add);
      else if (bias != nullptr) place_results(part, back, out, bias, to, first, count, false);
    });
    return done;
  }
  /// With a bias and relu, if there are any. False, and nothing is done, where there is none or the BLAS refuses.
  bool multiply_with_tail(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, const T* bias, bool relu,
                          bool add) const {
    if ((bias == nullptr && !relu) || a.batches > 1 || reinterpret_cast<std::uintptr_t>(bias) % 16 != 0) return false;
    product_tail tail;
    tail.bias = bias;
    if (relu) tail.act = product_tail::activation::relu;
    return multiply_by_blas<T, D>(a, b, c, add, tail);
  }

  /// The product of dy and the patches, summed up over chunks in the type of computation.
  void multiply_for_weights(const conv_part& part, const T* x, const T* dy, T* dw, bool add) const {
    const bool copied = !part.is_identity();
    const weight_matrix weights = weights_of_results(e_, part, false, copied ? row_alignment : 1);
    const index_t rows = e_.batch * part.pixels(), width = weights.width, groups = e_.groups;
    const index_t filters = e_.filters / groups, channels = e_.channels / groups;
    if (weights.numel() == 0) return;
    const conv_chunks chunks(rows, std::max<index_t>((copied ? groups * width : 0) * index_t{sizeof(T)}, 1));
    const index_t stride = weights.column_stride();
    const matrix_ref there =
        matrix(dw + weights.origin, filters, width, weights.rows.stride, stride, groups, weights.groups.stride);
    const column_major seen(there);
    const bool one_type = std::is_same_v<T, C> || chunks.each >= rows;
    const bool in_place = rows > 0 && stride != 0 && seen.fits && !seen.turned && one_type;
    const temporary patches(copied ? static_cast<std::size_t>(chunks.each * groups * width) * sizeof(T) : 0);
    const temporary sums(in_place ? 0 : static_cast<std::size_t>(weights.numel()) * sizeof(C));
    chunks.each_chunk([&](index_t first, index_t count) {
      if (copied) copy_patches(part, false, width, x, static_cast<T*>(patches.data()), first, count);
      const matrix_ref left = matrix(dy + first * e_.filters, filters, count, 1, e_.filters, groups, filters);
      const matrix_ref right = copied ? matrix(patches.data(), count, width, width, 1, groups, count * width)
                                      : matrix(x + first * e_.channels, count, width, e_.channels, 1, groups, channels);
      if (in_place) return multiply<T, D>(left, right, there, add || first > 0);
      multiply<T, D, C>(left, right, matrix(sums.data(), filters, width, width, 1, groups, filters * width), first > 0);
    });
    if (in_place) return;
    const C* const all = rows > 0 ? static_cast<const C*>(sums.data()) : nullptr;
    launch_each<D>(what_, unpack_weights_body<C, T>{weights, all, dw, add});
  }

  work what_;
  conv_extents e_;
};

}  // namespace sinter::cuda_impl
