// sinter/io/dlpack.hpp: tensors of other libraries on the same memory, by DLPack.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>

#include "sinter/core/create.hpp"
#include "sinter/core/gpu_only.hpp"
#include "sinter/expr/expression.hpp"

namespace sinter {

// Names in messages.
struct export_of_a_variable;
struct pass_its_value_with_dot_value;

/// The structures of DLPack, https://dmlc.github.io/dlpack/latest, as every library lays them out in memory: those that
/// it calls DLDevice, DLDataType, DLTensor and DLManagedTensor. A pointer to the latter is cast to its own name.
namespace dlpack {

enum class device_kind : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
enum class element_kind : std::uint8_t { integer = 0, unsigned_integer = 1, real = 2, bfloat = 4, boolean = 6 };

struct device_type {
  device_kind kind;
  std::int32_t number;
};
struct element_type {
  element_kind kind;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct tensor_type {
  void* data;
  device_type device;
  std::int32_t rank;
  element_type element;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: row-major
  std::uint64_t byte_offset;
};
struct managed_tensor {
  tensor_type tensor;
  void* owner;
  void (*destroy)(managed_tensor*);
};

}  // namespace dlpack

namespace detail {

template <element T>
constexpr dlpack::element_type dlpack_element() {
  using kind = dlpack::element_kind;
  constexpr kind what = std::is_same_v<T, bool>                                  ? kind::boolean
                        : std::is_same_v<T, bfloat16>                            ? kind::bfloat
                        : std::is_same_v<T, half> || std::is_floating_point_v<T> ? kind::real
                        : std::is_signed_v<T>                                    ? kind::integer
                                                                                 : kind::unsigned_integer;
  return {what, 8 * sizeof(T), 1};
}

/// Throws unless `given` has elements `wanted`, called `name`, `rank` axes and data that is aligned to them on a device
/// that serves as one of the host, or the GPU of that number. Copies shape and strides.
SINTER_SHARED_COLD void read_dlpack(const dlpack::managed_tensor* given, dlpack::element_type wanted, const char* name,
                                    int rank, int gpu, index_t* shape, index_t* strides);

/// Storage that ends what it was given.
SINTER_SHARED_COLD storage_ptr own_dlpack(dlpack::managed_tensor* given, void* data, std::size_t bytes);

/// A tensor for others, which keeps `owner`.
SINTER_SHARED_COLD dlpack::managed_tensor* make_dlpack(storage_ptr owner, void* data, dlpack::device_type device,
                                                       dlpack::element_type element, const index_t* shape,
                                                       const index_t* strides, int rank);

}  // namespace detail

/// x for another library, on the same memory, which lives until that library calls `destroy(result)`. Of a GPU: what
/// was queued for x is waited for. Strides are those of x; of negative ones, as flip() makes them, NumPy takes the
/// result, PyTorch and from_dlpack() do not: pass x.flip(0).clone(). Errors: value_error for a tensor without elements'
/// memory (default constructed).
///
///     PyCapsule_New(to_dlpack(x), "dltensor", ...);
template <class T, auto Shape, device D>
[[nodiscard]] dlpack::managed_tensor* to_dlpack(const tensor<T, Shape, D>& x) {
  detail::check_defined("to_dlpack", x);
  if constexpr (is_cuda_v<D>) synchronize<D>();
  const auto kind = is_cuda_v<D> ? dlpack::device_kind::cuda : dlpack::device_kind::cpu;
  return detail::make_dlpack(detail::access::storage_of(x), detail::access::data(x),
                             {kind, is_cuda_v<D> ? device_ordinal_v<D> : 0}, detail::dlpack_element<T>(),
                             x.shape().data(), x.strides().data(), int{Shape});
}

template <class T, auto Shape, device D, int Order, class Problem = export_of_a_variable,
          class Fix = pass_its_value_with_dot_value>
void to_dlpack(const variable<T, Shape, D, Order>&) = delete;

/// A tensor on the memory of another library, strides included, which calls `given->destroy` when its last handle ends.
/// What either side writes, the other one sees; memory that the other side holds read-only must not be written. The
/// other side's work on a GPU must have ended. Errors, after which `given` is still the caller's: value_error for a
/// null pointer, other elements, negative strides or data that is not aligned; shape_error for another rank;
/// device_error for memory on another device.
///
///     tensor x = from_dlpack<float, 2>(capsule);
template <element T, int R, device D = cpu>
  requires(is_cuda_v<D> || std::is_same_v<D, cpu>)
tensor<T, R, D> from_dlpack(dlpack::managed_tensor* given) {
  extents<R> shape{}, strides{};
  detail::read_dlpack(given, detail::dlpack_element<T>(), element_name<T>(), R, is_cuda_v<D> ? device_ordinal_v<D> : -1,
                      shape.values, strides.values);
  const index_t n = detail::checked_numel("from_dlpack", shape.data(), R, sizeof(T));
  T* const data = reinterpret_cast<T*>(static_cast<char*>(given->tensor.data) + given->tensor.byte_offset);
  if constexpr (is_cuda_v<D>) {
    if (n > 0) detail::device_runtime<D>::check_place("from_dlpack", data, sizeof(T));
  }
  return detail::access::make<T, R, D>(detail::own_dlpack(given, data, static_cast<std::size_t>(n) * sizeof(T)), data,
                                       shape, strides);
}

#if SINTER_DEFINES

namespace detail {

SINTER_SHARED_COLD void read_dlpack(const dlpack::managed_tensor* given, dlpack::element_type wanted, const char* name,
                                    int rank, int gpu, index_t* shape, index_t* strides) {
  if (given == nullptr) refuse<value_error>({"from_dlpack: null pointer; it is null where a capsule was used before"});
  const dlpack::tensor_type& x = given->tensor;
  if (x.element.kind != wanted.kind || x.element.bits != wanted.bits || x.element.lanes != 1) {
    constexpr const char* kinds[] = {"integers",         "unsigned integers", "real numbers", "opaque elements",
                                     "bfloat16 numbers", "complex numbers",   "bools"};
    const auto number = static_cast<std::size_t>(x.element.kind);
    refuse<value_error>({"from_dlpack: ", number < std::size(kinds) ? kinds[number] : "elements of another kind",
                         " of ", int(x.element.bits), " bits", x.element.lanes == 1 ? "" : " in several lanes",
                         " are no ", name, "; convert them first"});
  }
  if (x.rank != rank)
    refuse<shape_error>({"from_dlpack: a tensor of rank ", x.rank, " for one of rank ", rank, "; name its rank"});
  using kind = dlpack::device_kind;
  const bool on_host = x.device.kind == kind::cpu || x.device.kind == kind::cuda_host;
  const bool fits = gpu < 0 ? on_host : x.device.kind == kind::cuda && x.device.number == gpu;
  if (!fits && x.device.kind != kind::cuda_managed)
    refuse<device_error>({"from_dlpack: the memory is on device kind ", int(x.device.kind), " number ", x.device.number,
                          ", the type says ", gpu < 0 ? std::string("cpu") : "cuda:" + std::to_string(gpu)});
  index_t step = 1;
  bool empty = false;
  for (int axis = rank - 1; axis >= 0; --axis) {
    shape[axis] = x.shape[axis];
    strides[axis] = x.strides == nullptr ? step : x.strides[axis];
    if (shape[axis] < 0 || strides[axis] < 0)
      refuse<value_error>({"from_dlpack: axis ", axis, " has extent ", shape[axis], " and stride ", strides[axis],
                           "; neither may be negative, so copy the tensor first"});
    empty = empty || shape[axis] == 0;
    if (x.strides == nullptr && __builtin_mul_overflow(step, shape[axis] > 0 ? shape[axis] : 1, &step))
      refuse<shape_error>({"from_dlpack: the extents are more than can be addressed"});
  }
  const auto place = reinterpret_cast<std::uintptr_t>(x.data) + x.byte_offset;
  if (!empty && (x.data == nullptr || place % (wanted.bits / 8) != 0))
    refuse<value_error>(
        {"from_dlpack: the data lies at no multiple of ", wanted.bits / 8, " bytes; copy the tensor first"});
}

SINTER_SHARED_COLD storage_ptr own_dlpack(dlpack::managed_tensor* given, void* data, std::size_t bytes) {
  struct end {
    void operator()(dlpack::managed_tensor* one) const {
      if (one->destroy != nullptr) one->destroy(one);
    }
  };
  auto* const s = new owning_storage<std::unique_ptr<dlpack::managed_tensor, end>>(data, bytes);
  s->owner.reset(given);
  return storage_ptr(s);
}

SINTER_SHARED_COLD dlpack::managed_tensor* make_dlpack(storage_ptr owner, void* data, dlpack::device_type device,
                                                       dlpack::element_type element, const index_t* shape,
                                                       const index_t* strides, int rank) {
  struct mine {
    dlpack::managed_tensor shown;
    storage_ptr kept;
    std::int64_t shape[max_rank], strides[max_rank];
  };
  static_assert(std::is_same_v<index_t, std::int64_t>);
  auto made = std::make_unique<mine>();
  made->kept = std::move(owner);
  for (int axis = 0; axis < rank; ++axis) made->shape[axis] = shape[axis], made->strides[axis] = strides[axis];
  made->shown = {{data, device, rank, element, made->shape, made->strides, 0},
                 made.get(),
                 [](dlpack::managed_tensor* one) { delete static_cast<mine*>(one->owner); }};
  return &made.release()->shown;
}

}  // namespace detail

#endif  // SINTER_DEFINES

}  // namespace sinter
