// sinter/cuda/blas.hpp: matrix products by cuBLASLt on the stream of a GPU; those of half and bfloat16 with float sums.
#pragma once

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "sinter/cuda/context.hpp"
#include "sinter/cuda/product.hpp"
#include "sinter/ops/matmul_precision.hpp"

namespace sinter::cuda_impl {

inline void check(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = what + ": " + cublasLtGetStatusString(status) + " (" + cublasLtGetStatusName(status) + ")";
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    sinter::detail::refuse<out_of_memory>({text, "; free tensors or use smaller batches"});
  throw device_error(text);
}

/// What cuBLASLt is told of an element type: its name, the type of alpha and beta, and the arithmetic.
template <class T>
struct blas_element;
template <>
struct blas_element<float> {
  using scalar = float;
  static constexpr cudaDataType_t type = CUDA_R_32F, scalar_type = CUDA_R_32F;
  static cublasComputeType_t arithmetic() {
    switch (use_matmul_precision::now()) {
      case matmul_precision::tf32:
        return CUBLAS_COMPUTE_32F_FAST_TF32;
      case matmul_precision::float32:
        break;
    }
    return CUBLAS_COMPUTE_32F;
  }
};
template <>
struct blas_element<double> {
  using scalar = double;
  static constexpr cudaDataType_t type = CUDA_R_64F, scalar_type = CUDA_R_64F;
  static cublasComputeType_t arithmetic() { return CUBLAS_COMPUTE_64F; }
};
template <narrow_element T>
struct blas_element<T> {
  using scalar = float;
  static constexpr cudaDataType_t type = std::is_same_v<T, half> ? CUDA_R_16F : CUDA_R_16BF, scalar_type = CUDA_R_32F;
  static cublasComputeType_t arithmetic() { return CUBLAS_COMPUTE_32F; }
};

/// cuBLASLt on a context's stream; one caller at a time. What a product needs, its descriptors and the algorithm that
/// cuBLASLt's heuristic picks for its shape, is made once and kept.
class blas {
 public:
  explicit blas(context& c) : context_(c) {
    const use_gpu current(c.gpu());
    check(cublasLtCreate(&handle_), c.name() + ": starting cuBLASLt");
  }
  blas(const blas&) = delete;
  blas& operator=(const blas&) = delete;

  /// False where cuBLASLt has no algorithm for it. To are the elements of the result, T those of the factors.
  template <class T, class To = T>
  bool run(const blas_product& p) {
    const std::string what = context_.name() + ": matrix product (" + std::to_string(p.n) + "," + std::to_string(p.k) +
                             ") x (" + std::to_string(p.k) + "," + std::to_string(p.m) + ")";
    const auto held = context_.capture().enter("matmul");
    const std::lock_guard lock(busy_);
    const use_gpu current(context_.gpu());
    const plan& way = plan_for<T, To>(p, what);
    if (!way.found) return false;
    set_pointers(way.operation.get(), p.tail, what);
    // The next product on this stream that takes the same memory works after this one.
    const sinter::detail::block workspace(context_.memory(), way.workspace);
    const typename blas_element<T>::scalar one = 1, beta = p.accumulate ? 1 : 0;
    check(cublasLtMatmul(handle_, way.operation.get(), &one, p.a.data, way.a.get(), p.b.data, way.b.get(), &beta,
                         p.d.data, way.d.get(), p.d.data, way.d.get(), &way.algorithm, workspace.data(), way.workspace,
                         context_.stream()),
          what);
    context_.count_launches();
    return true;
  }

 private:
  using operation_ptr = owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
  using layout_ptr = owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
  using preference_ptr = owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

  struct plan {
    operation_ptr operation;
    layout_ptr a, b, d;
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace = 0;
    bool found = false;
  };
  using key = std::array<index_t, 20>;

  static constexpr std::size_t most_plans = 4096;
  static constexpr std::size_t most_workspace = std::size_t{32} << 20;

  static cublasLtEpilogue_t epilogue_of(const product_tail& tail) {
    const bool biased = tail.bias != nullptr, kept = tail.kept != nullptr,
               gelu = tail.act == product_tail::activation::gelu_tanh;
    if (tail.slope) {
      if (tail.of == product_tail::summed::product)
        return gelu ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DRELU_BGRAD;
      return gelu ? CUBLASLT_EPILOGUE_DGELU : CUBLASLT_EPILOGUE_DRELU;
    }
    if (tail.of == product_tail::summed::right)
      return CUBLASLT_EPILOGUE_BGRADA;  // a BLAS that counts by columns has them turned round
    if (tail.of == product_tail::summed::left) return CUBLASLT_EPILOGUE_BGRADB;
    switch (tail.act) {
      case product_tail::activation::relu:
        if (kept) return biased ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX;
        return biased ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
      case product_tail::activation::gelu_tanh:
        if (kept) return biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        return biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
      case product_tail::activation::none:
        break;
    }
    return biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }

  /// The largest power of two, up to 256 bytes, at a multiple of which all batches of an operand begin.
  template <class T>
  static std::uint32_t alignment_of(const void* data, index_t batch_stride = 0) {
    const std::uintptr_t bits =
        reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uintptr_t>(batch_stride) * sizeof(T) | 256u;
    return static_cast<std::uint32_t>(bits & (~bits + 1));
  }

  template <class Attribute, class X>
  static void set(cublasLtMatmulDesc_t to, Attribute which, const X& value, const std::string& what) {
    check(cublasLtMatmulDescSetAttribute(to, which, &value, sizeof value), what);
  }
  template <class X>
  static void set(cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t which, const X& value,
                  const std::string& what) {
    check(cublasLtMatmulPreferenceSetAttribute(to, which, &value, sizeof value), what);
  }

  /// The bias that is added, or the sums for the gradient of one, and what is kept.
  static void set_pointers(cublasLtMatmulDesc_t to, const product_tail& tail, const std::string& what) {
    if (const void* const bias = tail.sums != nullptr ? tail.sums : tail.bias)
      set(to, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, what);
    if (tail.kept != nullptr) set(to, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, tail.kept, what);
  }

  template <class T>
  static layout_ptr layout_of(const blas_product::operand& x, index_t rows, index_t columns, index_t batches,
                              const std::string& what) {
    cublasLtMatrixLayout_t made = nullptr;
    if (x.turned) std::swap(rows, columns);
    check(cublasLtMatrixLayoutCreate(&made, blas_element<T>::type, static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), x.leading),
          what);
    layout_ptr layout(made);
    if (batches > 1) {
      const auto count = static_cast<std::int32_t>(batches);
      const std::int64_t stride = x.batch_stride;
      check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), what);
      check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
            what);
    }
    return layout;
  }

  template <class T, class To>
  const plan& plan_for(const blas_product& p, const std::string& what) {
    const cublasComputeType_t compute = blas_element<T>::arithmetic();
    const cublasLtEpilogue_t epilogue = epilogue_of(p.tail);
    const std::uint32_t aligned[3] = {alignment_of<T>(p.a.data, p.a.batch_stride),
                                      alignment_of<T>(p.b.data, p.b.batch_stride),
                                      std::min({alignment_of<To>(p.d.data, p.d.batch_stride),
                                                alignment_of<T>(p.tail.bias), alignment_of<T>(p.tail.sums)})};
    const key k{static_cast<index_t>(blas_element<T>::type),
                static_cast<index_t>(blas_element<To>::type),
                static_cast<index_t>(compute),
                static_cast<index_t>(epilogue),
                p.m,
                p.n,
                p.k,
                p.batches,
                p.a.leading,
                p.a.batch_stride,
                p.a.turned,
                p.b.leading,
                p.b.batch_stride,
                p.b.turned,
                p.d.leading,
                p.d.batch_stride,
                p.accumulate,
                aligned[0],
                aligned[1],
                aligned[2]};
    if (const auto at = plans_.find(k); at != plans_.end()) return at->second;
    if (plans_.size() >= most_plans) plans_.clear();
    return plans_.emplace(k, make_plan<T, To>(p, compute, epilogue, aligned, what)).first->second;
  }

  template <class T, class To>
  plan make_plan(const blas_product& p, cublasComputeType_t compute, cublasLtEpilogue_t epilogue,
                 const std::uint32_t (&aligned)[3], const std::string& what) const {
    plan way;
    if (p.batches > std::numeric_limits<std::int32_t>::max()) return way;
    cublasLtMatmulDesc_t operation = nullptr;
    check(cublasLtMatmulDescCreate(&operation, compute, blas_element<T>::scalar_type), what);
    way.operation.reset(operation);
    set(operation, CUBLASLT_MATMUL_DESC_TRANSA, p.a.turned ? CUBLAS_OP_T : CUBLAS_OP_N, what);
    set(operation, CUBLASLT_MATMUL_DESC_TRANSB, p.b.turned ? CUBLAS_OP_T : CUBLAS_OP_N, what);
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue, what);
    set_pointers(operation, p.tail, what);
    if (p.tail.kept != nullptr)
      set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{p.tail.kept_leading(p.m)}, what);
    way.a = layout_of<T>(p.a, p.m, p.k, p.batches, what);
    way.b = layout_of<T>(p.b, p.k, p.n, p.batches, what);
    way.d = layout_of<To>(p.d, p.m, p.n, p.batches, what);
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), what);
    const preference_ptr preference(made);
    set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace, what);
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned[0], what);
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned[1], what);
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned[2], what);
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned[2], what);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, operation, way.a.get(), way.b.get(),
                                                                 way.d.get(), way.d.get(), made, 1, &best, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return way;
    check(status, what + ": choosing an algorithm");
    way.found = found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
    way.algorithm = best.algo;
    way.workspace = best.workspaceSize;
    return way;
  }

  context& context_;
  std::mutex busy_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<key, plan> plans_;
};

template <device D>
blas& blas_of() {
  static blas& b = *new blas(context_of<D>());
  return b;
}

}  // namespace sinter::cuda_impl
