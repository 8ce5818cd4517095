// sinter/cuda/cub_folds.hpp: reductions, scans and counts by CUB, whose iterators compute the elements, and finish the
// results, on the way.
//
// Part of the backend where SINTER_WITH_CUB_FOLDS is 1, which holds for all files of a program that have it. In none of
// them may a `using namespace` make Sinter's names visible outside of functions and namespaces: CUB declares a
// namespace ::cuda, which nvcc names from there in code that it adds. Where a function uses Sinter's names, it calls
// the device sinter::cuda<0>.
//
// Left to Sinter are columns, short rows, few rows and many bins, for which CUB has nothing that would fill a GPU or
// little memory, and scans whose result would depend on which block of CUB's is quicker, such as cumsum of float.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_CUDA
#error "sinter: sinter/cuda/cub_folds.hpp is for files with the CUDA backend, compiled by nvcc"
#else

#include <cub/version.cuh>
#if CUB_VERSION < 300000
#error "sinter: SINTER_WITH_CUB_FOLDS=1 needs CUB 3.0 or later, such as that of CUDA 13; leave it out here"
#endif

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <type_traits>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "sinter/cuda/cub_call.hpp"

namespace sinter::cuda_impl {

/// Rows of n elements, one after the other.
struct long_rows {
  index_t n;
  bool narrow;  ///< the elements' numbers fit the divider
  divider by_n;

  long_rows(index_t rows, index_t length) : n(length), narrow(rows * length < (index_t{1} << 31)) {
    if (narrow) by_n = divider(static_cast<std::uint32_t>(n));
  }
  __host__ __device__ index_t row_of(index_t number) const { return quotient(number, n, by_n, narrow); }
  __host__ __device__ index_t place(index_t number) const { return number - row_of(number) * n; }
};
struct one_row {
  __host__ __device__ index_t place(index_t number) const { return number; }
};
struct row_begins {
  index_t n;
  __host__ __device__ index_t operator()(index_t row) const { return row * n; }
};
struct row_numbers {
  long_rows rows;
  __host__ __device__ index_t operator()(index_t number) const { return rows.row_of(number); }
};

/// The state of R that has seen one element.
template <class R, class Source, class Rows>
struct element_states {
  Source source;
  Rows rows;
  __host__ __device__ typename R::state operator()(index_t number) const {
    auto s = R::identity();
    R::push(s, source(number), rows.place(number));
    return s;
  }
};
template <class F>
auto computed(const F& f) {
  return thrust::make_transform_iterator(thrust::counting_iterator<index_t>(0), f);
}
template <class R, class Source, class Rows>
auto states_of(const Source& source, const Rows& rows) {
  return computed(element_states<R, Source, Rows>{source, rows});
}

template <class R>
struct merge_states {
  using state = typename R::state;
  __host__ __device__ state operator()(const state& a, const state& b) const { return R::merge(a, b); }
};
template <class R, class Put>
struct put_finished {
  Put put;
  index_t n;
  __host__ __device__ void operator()(index_t number, const typename R::state& s) const {
    put(number, sinter::detail::finish_fold_of<R>(s, n));
  }
};
template <class Out>
struct put_state {
  Out out;
  template <class State>
  __host__ __device__ void operator()(index_t number, const State& s) const {
    out.put(number, s);
  }
};
/// Can folds of R be cut anywhere? CUB cuts reductions by the shape and the GPU, but a scan by which blocks are
/// quickest.
template <class R>
inline constexpr bool any_cut = std::is_integral_v<typename R::state> || requires { typename R::arg; };

/// Kernels of CUB's take all of it as parameters, and something beside.
template <class... Parts>
inline constexpr bool fits_cub = (sizeof(Parts) + ...) <= 30000;

/// A block of CUB's folds a row, however short it is, and however few there are.
inline constexpr index_t shortest_row = 256, fewest_rows = 64;
/// Of more bins each block of CUB's has all in the memory of the GPU.
inline constexpr index_t most_bins = 256;

/// The number that the source gives where it counts, else one that is in no bin. As float: CUB finds the bin of an
/// integer by a division.
template <class Source>
struct bin_of {
  Source source;
  std::int64_t bins;
  __host__ __device__ float operator()(index_t number) const {
    const std::int64_t v = source(number);
    return v >= 0 && v < bins ? static_cast<float>(v) : -1.f;
  }
};

/// What no_folds says, done by CUB where it can; what is true has been started.
struct cub_folds {
  context& c;

  template <class R, class Source, class Put>
  bool reduce(const work& w, const Source& source, index_t results, index_t n, const Put& put) const {
    if (n == 0 || (results > 1 && (n < shortest_row || results < fewest_rows))) return false;
    if constexpr (fits_cub<Source, Put>) {
      const auto out = thrust::make_tabulate_output_iterator(put_finished<R, Put>{put, n});
      const merge_states<R> merge;
      if (results == 1) {
        const auto in = states_of<R>(source, one_row{});
        call_cub(c, w, [&](void* scratch, std::size_t& bytes) {
          return cub::DeviceReduce::Reduce(scratch, bytes, in, out, n, merge, R::identity(), c.stream());
        });
      } else {
        const auto in = states_of<R>(source, long_rows(results, n));
        const auto begin = computed(row_begins{n});
        call_cub(c, w, [&](void* scratch, std::size_t& bytes) {
          return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, in, out, results, begin, begin + 1, merge,
                                                    R::identity(), c.stream());
        });
      }
    }
    return fits_cub<Source, Put>;
  }

  template <class R, class Source, class Out>
  bool scan(const work& w, const Source& source, index_t rows, index_t n, const Out& to) const {
    if (rows > 1 && (n < shortest_row || rows < fewest_rows)) return false;
    constexpr bool can = any_cut<R> && fits_cub<Source, Out>;
    if constexpr (can) {
      const auto out = thrust::make_tabulate_output_iterator(put_state<Out>{to});
      const merge_states<R> merge;
      if (rows == 1) {
        const auto in = states_of<R>(source, one_row{});
        call_cub(c, w, [&](void* scratch, std::size_t& bytes) {
          return cub::DeviceScan::InclusiveScan(scratch, bytes, in, out, merge, n, c.stream());
        });
      } else {
        const long_rows all(rows, n);
        const auto in = states_of<R>(source, all);
        const auto keys = computed(row_numbers{all});
        call_cub(c, w, [&](void* scratch, std::size_t& bytes) {
          return cub::DeviceScan::InclusiveScanByKey(scratch, bytes, keys, in, out, merge, rows * n,
                                                     ::cuda::std::equal_to<>{}, c.stream());
        });
      }
    }
    return can;
  }

  template <class Source>
  bool count(const work& w, const Source& source, index_t n, index_t bins, unsigned long long* counts) const {
    if (bins > most_bins) return false;
    if constexpr (fits_cub<Source>) {
      const auto in = computed(bin_of<Source>{source, bins});
      call_cub(c, w, [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceHistogram::HistogramEven(scratch, bytes, in, counts, static_cast<int>(bins) + 1, 0.f,
                                                   static_cast<float>(bins), n, c.stream());
      });
    }
    return fits_cub<Source>;
  }
};

}  // namespace sinter::cuda_impl
#endif
