// tests/cuda/runtime/fake_blas.cpp: the functions of cuBLASLt that Sinter calls, without a GPU; see fake.hpp. Products
// are computed in double, with all that may follow them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "fake.hpp"
#include "fake_inside.hpp"

using namespace fake_cuda;

namespace {

struct library {
  int gpu;
};
/// Of a product, a matrix or a preference: its attributes, by number.
struct descriptor {
  int compute = 0, scale = 0;
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, leading = 0;
  std::map<int, std::uint64_t> attributes;

  std::uint64_t at(int which, std::uint64_t otherwise) const {
    const auto found = attributes.find(which);
    return found == attributes.end() ? otherwise : found->second;
  }
};
template <class Handle>
const descriptor& of(Handle handle) {
  return *reinterpret_cast<const descriptor*>(handle);
}
template <class Handle>
Handle new_descriptor(const descriptor& d) {
  ++live_descriptors();
  return reinterpret_cast<Handle>(new descriptor(d));
}
template <class Handle>
cublasStatus_t destroy(Handle handle) {
  --live_descriptors();
  delete reinterpret_cast<const descriptor*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t misuse(const std::string& what, cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE) {
  note(what);
  return status;
}

template <class F>
cublasStatus_t call(const char* function, const F& f) {
  std::unique_lock<std::mutex> lock;
  const cublasStatus_t status = begin_library_call(function, lock);
  return status == CUBLAS_STATUS_SUCCESS ? f() : status;
}

template <class Handle>
cublasStatus_t set(Handle handle, int which, const void* value, std::size_t size,
                   const std::map<int, std::size_t>& sizes) {
  const auto known = sizes.find(which);
  if (known == sizes.end() || known->second != size)
    return misuse("cuBLASLt: attribute " + std::to_string(which) + " of " + std::to_string(size) + " bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, value, size);
  const_cast<descriptor&>(of(handle)).attributes[which] = bits;
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t size_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
      return 4;
    default:
      return 2;
  }
}

constexpr bool has_bias(int e) {
  return e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_RELU_BIAS || e == CUBLASLT_EPILOGUE_RELU_AUX_BIAS ||
         e == CUBLASLT_EPILOGUE_GELU_BIAS || e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
constexpr bool is_relu(int e) {
  return e == CUBLASLT_EPILOGUE_RELU || e == CUBLASLT_EPILOGUE_RELU_BIAS || e == CUBLASLT_EPILOGUE_RELU_AUX ||
         e == CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
}
constexpr bool is_gelu(int e) {
  return e == CUBLASLT_EPILOGUE_GELU || e == CUBLASLT_EPILOGUE_GELU_BIAS || e == CUBLASLT_EPILOGUE_GELU_AUX ||
         e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
constexpr bool keeps(int e) {
  return e == CUBLASLT_EPILOGUE_RELU_AUX || e == CUBLASLT_EPILOGUE_RELU_AUX_BIAS || e == CUBLASLT_EPILOGUE_GELU_AUX ||
         e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
constexpr bool is_slope(int e) {
  return e == CUBLASLT_EPILOGUE_DRELU || e == CUBLASLT_EPILOGUE_DRELU_BGRAD || e == CUBLASLT_EPILOGUE_DGELU ||
         e == CUBLASLT_EPILOGUE_DGELU_BGRAD;
}
constexpr bool sums(int e) {
  return e == CUBLASLT_EPILOGUE_DRELU_BGRAD || e == CUBLASLT_EPILOGUE_DGELU_BGRAD || e == CUBLASLT_EPILOGUE_BGRADA ||
         e == CUBLASLT_EPILOGUE_BGRADB;
}
constexpr bool of_bits(int e) {
  return is_relu(e) || e == CUBLASLT_EPILOGUE_DRELU || e == CUBLASLT_EPILOGUE_DRELU_BGRAD;
}

double value(float x) { return x; }
double value(double x) { return x; }
double value(__half x) { return __half2float(x); }
double value(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
T rounded(double x) {
  if constexpr (std::is_same_v<T, __half>) return __double2half(x);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>) return __double2bfloat16(x);
  else return static_cast<T>(x);
}

/// d (m,n) = a (m,k) b (k,n), column-major, as its descriptors say it.
struct product {
  struct matrix {
    std::int64_t rows, columns, leading, batches, stride;
    bool turned = false;
    explicit matrix(const descriptor& d)
        : rows(d.rows),
          columns(d.columns),
          leading(d.leading),
          batches(static_cast<std::int64_t>(d.at(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1))),
          stride(static_cast<std::int64_t>(d.at(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0))) {}
    std::int64_t at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
      return batch * stride + (turned ? j + i * leading : i + j * leading);
    }
    std::size_t extent() const {
      return static_cast<std::size_t>((batches - 1) * stride + (columns - 1) * leading + rows);
    }
  };
  cudaDataType_t type, result_type;
  matrix a, b, d;
  std::int64_t m, n, k;
  int epilogue;
  bool tf32;
  void *bias, *kept;
  std::int64_t kept_leading;

  product(const descriptor& p, const descriptor& left, const descriptor& right, const descriptor& to)
      : type(left.type), result_type(to.type), a(left), b(right), d(to), m(to.rows), n(to.columns) {
    a.turned = p.at(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) == CUBLAS_OP_T;
    b.turned = p.at(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) == CUBLAS_OP_T;
    k = a.turned ? a.rows : a.columns;
    tf32 = p.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    epilogue = static_cast<int>(p.at(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT));
    bias = reinterpret_cast<void*>(p.at(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 0));
    kept = reinterpret_cast<void*>(p.at(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 0));
    kept_leading = static_cast<std::int64_t>(p.at(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0));
  }

  std::int64_t sums_length() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB ? n : m; }

  /// Why it is none, apart from where the memory lies; empty: it is one.
  std::string trouble(const descriptor& p, const descriptor& right, const descriptor& to, const descriptor& c) const {
    if (&c != &to) return "C and D have different layouts";
    const bool widens = size_of(type) == 2 && result_type == CUDA_R_32F && epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    if (right.type != type || (result_type != type && !widens)) return "element types differ";
    if (p.scale != (to.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F)) return "the type of alpha";
    if ((p.compute == CUBLAS_COMPUTE_64F) != (to.type == CUDA_R_64F)) return "the arithmetic";
    if (m < 1 || n < 1 || k < 1) return "an extent below 1";
    if ((a.turned ? a.columns : a.rows) != m || (b.turned ? b.columns : b.rows) != k ||
        (b.turned ? b.rows : b.columns) != n)
      return "extents that do not fit";
    for (const matrix* x : {&a, &b, &d})
      if (x->leading < x->rows || x->batches != d.batches) return "a leading dimension or a number of batches";
    const bool apart = d.stride >= (n - 1) * d.leading + m;
    const bool side_by_side = d.stride >= m && (d.batches - 1) * d.stride + m <= d.leading;
    if (d.batches > 1 && !apart && !side_by_side) return "matrices of the result overlap";
    if ((has_bias(epilogue) || sums(epilogue)) && bias == nullptr) return "no bias, where one is needed";
    if ((keeps(epilogue) || is_slope(epilogue)) &&
        (kept == nullptr || kept_leading < m || kept_leading % (of_bits(epilogue) ? 128 : 8) != 0))
      return "what is kept has no place, or a leading dimension that does not fit";
    return {};
  }

  template <class T, class To>
  void run(const T* from_a, const T* from_b, To* to, bool add) const {
    std::vector<double> summed(static_cast<std::size_t>(sums_length()));
    for (std::int64_t batch = 0; batch < d.batches; ++batch)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i) {
          To& out = to[d.at(batch, i, j)];
          double x = add ? value(out) : 0;
          for (std::int64_t p = 0; p < k; ++p)
            x += factor(from_a[a.at(batch, i, p)]) * factor(from_b[b.at(batch, p, j)]);
          x = followed<T>(x, i, j);
          if (is_slope(epilogue) && sums(epilogue)) summed[static_cast<std::size_t>(i)] += x;
          out = rounded<To>(x);
        }
    if (!sums(epilogue)) return;
    if (epilogue == CUBLASLT_EPILOGUE_BGRADA)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t p = 0; p < k; ++p) summed[static_cast<std::size_t>(i)] += value(from_a[a.at(0, i, p)]);
    if (epilogue == CUBLASLT_EPILOGUE_BGRADB)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t p = 0; p < k; ++p) summed[static_cast<std::size_t>(j)] += value(from_b[b.at(0, p, j)]);
    for (std::size_t i = 0; i < summed.size(); ++i) static_cast<T*>(bias)[i] = rounded<T>(summed[i]);
  }

 private:
  /// As it is multiplied: TF32 keeps 10 bits after the point.
  template <class T>
  double factor(T x) const {
    if (!tf32 || !std::isfinite(value(x))) return value(x);
    int exponent = 0;
    const double fraction = std::frexp(value(x), &exponent);
    return std::ldexp(std::round(std::ldexp(fraction, 11)), exponent - 11);
  }
  static double gelu(double x) { return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

  template <class T>
  double followed(double x, std::int64_t i, std::int64_t j) const {
    const auto place = static_cast<std::size_t>(i + j * kept_leading);
    auto* const bits = static_cast<unsigned char*>(kept);
    auto* const values = static_cast<T*>(kept);
    if (has_bias(epilogue)) x += value(static_cast<const T*>(bias)[i]);
    if (keeps(epilogue) && is_relu(epilogue))
      bits[place / 8] = static_cast<unsigned char>((bits[place / 8] & ~(1 << place % 8)) | (x > 0) << place % 8);
    if (keeps(epilogue) && is_gelu(epilogue)) values[place] = rounded<T>(x);
    if (is_relu(epilogue)) return x <= 0 ? 0 : x;  // NaN stays; whether it does in the real one is to be seen on a GPU
    if (is_gelu(epilogue)) return gelu(x);
    if (!is_slope(epilogue)) return x;
    if (of_bits(epilogue)) return (bits[place / 8] >> place % 8 & 1) != 0 ? x : 0;
    const double v = value(values[place]), h = 1e-4;
    return x * (gelu(v + h) - gelu(v - h)) / (2 * h);
  }
};

constexpr std::uint64_t known_algorithm = 0x51A7E;

}  // namespace

extern "C" {

const char* cublasLtGetStatusName(cublasStatus_t) { return "a status of the test"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "an error of the test"; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* to) {
  return call("cublasLtCreate", [&] {
    ++live_libraries();
    *to = reinterpret_cast<cublasLtHandle_t>(new library{current_gpu()});
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t compute, cudaDataType_t scale) {
  return call("cublasLtMatmulDescCreate", [&] {
    descriptor d;
    d.compute = compute;
    d.scale = scale;
    *to = new_descriptor<cublasLtMatmulDesc_t>(d);
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return destroy(d); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t size) {
  return call("cublasLtMatmulDescSetAttribute", [&] {
    return set(d, which, value, size,
               {{CUBLASLT_MATMUL_DESC_TRANSA, 4},
                {CUBLASLT_MATMUL_DESC_TRANSB, 4},
                {CUBLASLT_MATMUL_DESC_EPILOGUE, 4},
                {CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8},
                {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 8},
                {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 8}});
  });
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  return call("cublasLtMatrixLayoutCreate", [&] {
    descriptor d;
    d.type = type;
    d.rows = static_cast<std::int64_t>(rows);
    d.columns = static_cast<std::int64_t>(columns);
    d.leading = leading;
    *to = new_descriptor<cublasLtMatrixLayout_t>(d);
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t d) { return destroy(d); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t d, cublasLtMatrixLayoutAttribute_t which,
                                                const void* value, std::size_t size) {
  return call("cublasLtMatrixLayoutSetAttribute", [&] {
    return set(d, which, value, size,
               {{CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 4}, {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 8}});
  });
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) {
  return call("cublasLtMatmulPreferenceCreate", [&] {
    *to = new_descriptor<cublasLtMatmulPreference_t>({});
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t d) { return destroy(d); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t d,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* value,
                                                    std::size_t size) {
  return call("cublasLtMatmulPreferenceSetAttribute", [&] {
    return set(d, which, value, size,
               {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 8},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 4},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 4},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 4},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 4}});
  });
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t p, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t wishes, int asked,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  return call("cublasLtMatmulAlgoGetHeuristic", [&] {
    *found = 0;
    if (handle == nullptr || asked != 1)
      return misuse("cublasLtMatmulAlgoGetHeuristic: no handle, or more than one result asked for");
    const product now(of(p), of(a), of(b), of(d));
    if (const std::string why = now.trouble(of(p), of(b), of(d), of(c)); !why.empty())
      return misuse("cublasLtMatmulAlgoGetHeuristic: " + why);
    if (now.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !settings().epilogues) return CUBLAS_STATUS_NOT_SUPPORTED;
    const std::size_t workspace = settings().workspace;
    if (workspace > of(wishes).at(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 0)) return CUBLAS_STATUS_NOT_SUPPORTED;
    *found = 1;
    results[0] = {};
    results[0].workspaceSize = workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    std::uint64_t* const algorithm = results[0].algo.data;
    algorithm[0] = known_algorithm;
    algorithm[1] = static_cast<std::uint64_t>(now.epilogue);
    algorithm[2] = workspace;
    algorithm[3] = of(wishes).at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 256);
    algorithm[4] = of(wishes).at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 256);
    algorithm[5] = of(wishes).at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 256);
    algorithm[6] = of(wishes).at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 256);
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t p, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  return call("cublasLtMatmul", [&] {
    const int gpu = reinterpret_cast<const library*>(handle)->gpu;
    const product now(of(p), of(a_layout), of(b_layout), of(d_layout));
    if (const std::string why = now.trouble(of(p), of(b_layout), of(d_layout), of(c_layout)); !why.empty())
      return misuse("cublasLtMatmul: " + why);
    const std::uint64_t* const plan = algorithm->data;
    if (plan[0] != known_algorithm || plan[1] != static_cast<std::uint64_t>(now.epilogue))
      return misuse("cublasLtMatmul: an algorithm for another product");
    if (gpu != current_gpu()) return misuse("cublasLtMatmul: the handle belongs to GPU " + std::to_string(gpu));
    if (c != d) return misuse("cublasLtMatmul: C is not D");
    if (workspace_bytes < plan[2] || reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0 ||
        (workspace_bytes > 0 && !trouble(workspace, workspace_bytes, gpu).empty()))
      return misuse("cublasLtMatmul: the workspace");
    const std::size_t size = size_of(now.type);
    const struct {
      const char* name;
      const void* data;
      std::size_t bytes;
      std::uint64_t alignment;
    } operands[] = {{"A", a, now.a.extent() * size, plan[3]},
                    {"B", b, now.b.extent() * size, plan[4]},
                    {"D", d, now.d.extent() * size_of(now.result_type), std::max(plan[5], plan[6])}};
    for (const auto& o : operands) {
      if (reinterpret_cast<std::uintptr_t>(o.data) % o.alignment != 0)
        return misuse(std::string("cublasLtMatmul: the alignment of ") + o.name);
      if (const std::string why = trouble(o.data, o.bytes, gpu); !why.empty())
        return misuse(std::string("cublasLtMatmul: ") + o.name + ": " + why);
    }
    if (has_bias(now.epilogue) || sums(now.epilogue)) {
      if (reinterpret_cast<std::uintptr_t>(now.bias) % 16 != 0)
        return misuse("cublasLtMatmul: the alignment of the bias");
      if (const std::string why = trouble(now.bias, static_cast<std::size_t>(now.sums_length()) * size, gpu);
          !why.empty())
        return misuse("cublasLtMatmul: the bias: " + why);
    }
    if (keeps(now.epilogue) || is_slope(now.epilogue)) {
      const auto elements = static_cast<std::size_t>(now.n * now.kept_leading);
      if (reinterpret_cast<std::uintptr_t>(now.kept) % 16 != 0)
        return misuse("cublasLtMatmul: the alignment of what is kept");
      if (const std::string why = trouble(now.kept, of_bits(now.epilogue) ? elements / 8 : elements * size, gpu);
          !why.empty())
        return misuse("cublasLtMatmul: what is kept: " + why);
    }
    const auto matches = [&](auto one) {
      using T = decltype(one);
      T scale, add;
      std::memcpy(&scale, alpha, sizeof scale);
      std::memcpy(&add, beta, sizeof add);
      return std::pair{scale == one, add == one};
    };
    const auto [plain, add] = now.type == CUDA_R_64F ? matches(1.0) : matches(1.0f);
    if (!plain) return misuse("cublasLtMatmul: alpha is not 1");
    const bool put = put_library_work("cublasLtMatmul", stream, [=, add = add] {
      const auto run = [&](auto element) {
        using T = decltype(element);
        const auto into = [&](auto* to) { now.run(static_cast<const T*>(a), static_cast<const T*>(b), to, add); };
        if (now.result_type == now.type) into(static_cast<T*>(d));
        else into(static_cast<float*>(d));
      };
      switch (now.type) {
        case CUDA_R_32F:
          return run(float());
        case CUDA_R_64F:
          return run(double());
        case CUDA_R_16F:
          return run(__half());
        default:
          return run(__nv_bfloat16());
      }
    });
    return put ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  });
}

}  // extern "C"
