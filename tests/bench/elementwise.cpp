// tests/bench/elementwise.cpp: fused expressions, Eigen's own and a hand-written loop. Usage: elementwise THREADS
#include <cstdlib>
#include <thread>

#include <immintrin.h>

#include <sinter/sinter.hpp>

#include <Eigen/Core>

#include "rows.hpp"

using namespace sinter;

namespace {

/// f(begin, end) on each of `threads` equal parts of [0, n).
template <class F>
void in_parts(int threads, index_t n, F f) {
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t) workers.emplace_back(f, n * t / threads, n * (t + 1) / threads);
  f(index_t{0}, n / threads);
  for (auto& w : workers) w.join();
}

using array = Eigen::Map<Eigen::ArrayXf, Eigen::Aligned64>;

/// Streams past the cache where the target can, as the best hand-written loop would.
void add_by_hand(const float* a, const float* b, float* y, index_t begin, index_t end) {
#ifdef __AVX512F__
  for (index_t i = begin; i < end; i += 16)
    _mm512_stream_ps(y + i, _mm512_add_ps(_mm512_load_ps(a + i), _mm512_load_ps(b + i)));
#elif defined(__AVX__)
  for (index_t i = begin; i < end; i += 8)
    _mm256_stream_ps(y + i, _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i)));
#else
  for (index_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
#endif
}

/// The same of a copy.
void copy_by_hand(const float* x, float* y, index_t begin, index_t end) {
#ifdef __AVX512F__
  for (index_t i = begin; i < end; i += 16) _mm512_stream_ps(y + i, _mm512_load_ps(x + i));
#elif defined(__AVX__)
  for (index_t i = begin; i < end; i += 8) _mm256_stream_ps(y + i, _mm256_load_ps(x + i));
#else
  for (index_t i = begin; i < end; ++i) y[i] = x[i];
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  set_num_threads(threads);
  const index_t n = index_t{16} << 20;
  const double element = sizeof(float) * static_cast<double>(n);
  generator gen(1);
  const auto a = randn<float>(gen, {n}), b = randn<float>(gen, {n}), c = randn<float>(gen, {n}),
             d = randn<float>(gen, {n});
  auto y = empty<float>({n});
  const variable va = a, vb = b, vc = c, vd = d;
  const auto seed = ones_like(a);
  variable<float, 1> r;

  const index_t rows = 4096, columns = 1024;
  const double matrix = 2.0 * sizeof(float) * rows * columns;
  const auto x = randn<float>(gen, {rows, columns});
  const auto gain = randn<float>(gen, {columns}), bias = randn<float>(gen, {columns});
  tensor<float, 2> z;
  const auto wide = a.reshape({4096, 4096});
  const auto order = randperm(gen, 4096);
  tensor<std::int64_t, 1> largest;

  return serve({
      {"eigen formula", 3, 5 * element,
       [&] {
         in_parts(threads, n, [&](index_t begin, index_t end) {
           const auto part = [&](const tensor<float, 1>& t) { return array(t.data() + begin, end - begin); };
           part(y) = (part(a) * part(b) + part(c)).logistic() * part(d).tanh();
         });
       }},
      {"sinter formula", 3, 5 * element, [&] { y = sigmoid(a * b + c) * tanh(d); }},
      {"sinter formula backward", 3, 9 * element, [&] { r.backward(seed); },
       [&] {
         r = sigmoid(va * vb + vc) * tanh(vd);
         for (const auto& v : {va, vb, vc, vd}) v.zero_grad();
       }},
      {"hand a+b", 5, 3 * element,
       [&] {
         in_parts(threads, n,
                  [&](index_t begin, index_t end) { add_by_hand(a.data(), b.data(), y.data(), begin, end); });
       }},
      {"sinter a+b", 5, 3 * element, [&] { y = a + b; }},
      {"sinter softmax", 15, matrix, [&] { z = softmax(x, 1); }},
      {"hand copy of rows", 15, matrix,
       [&] {
         in_parts(threads, rows * columns,
                  [&](index_t begin, index_t end) { copy_by_hand(x.data(), y.data(), begin, end); });
       }},
      {"sinter transposed copy", 3, 2 * element, [&] { z = wide.transpose().clone(); }},
      {"sinter index_select", 3, 2 * element, [&] { z = index_select(wide, 0, order); }},
      {"sinter argmax of rows", 3, element, [&] { largest = argmax(wide, 1); }},
      {"sinter layer_norm", 15, matrix, [&] { z = layer_norm(x, gain, bias); }},
      {"sinter layer_norm from mean and square", 15, matrix,
       [&] {
         const auto centred = x - mean(x, 1, keepdim);
         const tensor scale = rsqrt(mean(square(centred), 1, keepdim) + 1e-5f);
         z = centred * scale * gain + bias;
       }},
  });
}
