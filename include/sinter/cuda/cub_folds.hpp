// sinter/cuda/cub_folds.hpp: reductions, scans and counts by CUB, whose iterators compute the elements, and finish the results, on the way.
//
// Part of the backend where SINTER_WITH_CUB_FOLDS is 1, which holds for all files of a program that nvcc compiles. None of them may have
// `using namespace sinter` outside of functions and namespaces: CUB declares a namespace ::cuda, which nvcc names from there in code
// that it adds. And who uses Sinter's names calls the device sinter::cuda<0>.
//
// Left to Sinter are columns, short rows, few rows, for which CUB has nothing that would fill a GPU, and scans whose result would
// depend on which block of CUB's is quicker, such as cumsum of float.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_CUDA
#error "sinter: sinter/cuda/cub_folds.hpp is for files with the CUDA backend, compiled by nvcc"
#else

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <limits>
#include <type_traits>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "sinter/cuda/cub_call.hpp"

namespace sinter::cuda_impl {

using counting = thrust::counting_iterator<index_t>;

/// The state of R that has seen one element, of rows of n.
template <class R, class Source>
struct element_states {
  Source source;
  index_t n;
  __host__ __device__ typename R::state operator()(index_t number) const {
    auto s = R::identity();
    R::push(s, source(number), number % n);
    return s;
  }
};
template <class R>
struct merge_states {
  using state = typename R::state;
  __host__ __device__ state operator()(const state& a, const state& b) const { return R::merge(a, b); }
};
template <class R, class Put>
struct put_finished {
  Put put;
  __host__ __device__ void operator()(index_t number, const typename R::state& s) const { put(number, R::finish(s)); }
};
template <class Out>
struct put_state {
  Out out;
  template <class State>
  __host__ __device__ void operator()(index_t number, const State& s) const {
    out.put(number, s);
  }
};
/// Where row `row` of n elements begins, and in which row an element is.
struct row_begin {
  index_t n;
  __host__ __device__ index_t operator()(index_t row) const { return row * n; }
};
struct row_of {
  index_t n;
  __host__ __device__ index_t operator()(index_t number) const { return number / n; }
};

template <class F>
auto computed(const F& f) {
  return thrust::make_transform_iterator(counting(0), f);
}

/// Can folds of R be cut anywhere? CUB cuts reductions by the shape and the GPU, but a scan by which blocks are quickest.
template <class R>
inline constexpr bool any_cut = std::is_integral_v<typename R::state> || requires { typename R::arg; };

/// Kernels of CUB's take all of it as parameters, and something beside.
template <class... Parts>
inline constexpr bool fits_cub = (sizeof(Parts) + ...) <= 30000;

/// A block of CUB's folds a row, however short it is, and however few there are.
inline constexpr index_t shortest_row = 256, fewest_rows = 64;

/// An element's number where it counts, else one that is in no bin.
template <class Source>
struct bin_of {
  Source source;
  std::int32_t bins;
  __host__ __device__ std::int32_t operator()(index_t number) const {
    const std::int64_t v = source(number);
    return v >= 0 && v < bins ? static_cast<std::int32_t>(v) : -1;
  }
};

/// What no_folds says, done by CUB where it can; what is true has been started.
struct cub_folds {
  context& c;

  template <class R, class Source, class Put>
  bool reduce(const work& w, const Source& source, index_t results, index_t n, const Put& put) const {
    if (n == 0 || (results > 1 && (n < shortest_row || results < fewest_rows))) return false;
    if constexpr (fits_cub<Source, Put>) {
      const auto in = computed(element_states<R, Source>{source, n});
      const auto out = thrust::make_tabulate_output_iterator(put_finished<R, Put>{put});
      const merge_states<R> merge;
      const auto begin = computed(row_begin{n});
      call_cub(c, w, [&](void* scratch, std::size_t& bytes) {
        if (results == 1) return cub::DeviceReduce::Reduce(scratch, bytes, in, out, n, merge, R::identity(), c.stream());
        return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, in, out, results, begin, begin + 1, merge, R::identity(), c.stream());
      });
    }
    return fits_cub<Source, Put>;
  }

  template <class R, class Source, class Out>
  bool scan(const work& w, const Source& source, index_t rows, index_t n, const Out& to) const {
    constexpr bool can = any_cut<R> && fits_cub<Source, Out>;
    if constexpr (can) {
      const auto in = computed(element_states<R, Source>{source, n});
      const auto out = thrust::make_tabulate_output_iterator(put_state<Out>{to});
      const merge_states<R> merge;
      const auto row = computed(row_of{n});
      call_cub(c, w, [&](void* scratch, std::size_t& bytes) {
        if (rows == 1) return cub::DeviceScan::InclusiveScan(scratch, bytes, in, out, merge, n, c.stream());
        return cub::DeviceScan::InclusiveScanByKey(scratch, bytes, row, in, out, merge, rows * n, ::cuda::std::equal_to<>{}, c.stream());
      });
    }
    return can;
  }

  template <class Source>
  bool count(const work& w, const Source& source, index_t n, index_t bins, unsigned long long* counts) const {
    if (bins >= std::numeric_limits<std::int32_t>::max()) return false;
    if constexpr (fits_cub<Source>) {
      const auto size = static_cast<std::int32_t>(bins);
      const auto in = computed(bin_of<Source>{source, size});
      call_cub(c, w, [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceHistogram::HistogramEven(scratch, bytes, in, counts, size + 1, std::int32_t{0}, size, n, c.stream());
      });
    }
    return fits_cub<Source>;
  }
};

}  // namespace sinter::cuda_impl
#endif
