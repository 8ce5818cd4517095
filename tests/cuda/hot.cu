// tests/cuda/hot.cu: statements whose kernels compile.py looks at.
#include <vector>

#include <sinter/sequences.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using vector = tensor<float, 1, cuda<0>>;
using leaf = variable<float, 1, cuda<0>>;

vector add(const vector& a, const vector& b) { return a + b; }
vector gated(const vector& a, const vector& b, const vector& c, const vector& d) {
  return sigmoid(a * b + c) * tanh(d);
}
void gated_backward(const leaf& a, const leaf& b, const leaf& c, const leaf& d, const vector& seed) {
  const variable y = sigmoid(a * b + c) * tanh(d);
  y.backward(seed);
}
// With the sums of a broadcast leaf.
void biased_backward(const variable<float, 2, cuda<0>>& x, const leaf& bias, const tensor<float, 2, cuda<0>>& seed) {
  const variable y = relu(x + bias);
  y.backward(seed);
}
tensor<double, 1, cuda<0>> in_double(const tensor<double, 1, cuda<0>>& a) { return abs(a) * 2; }
void two_results(vector& a, vector& b) { fuse(a.in_place() += b, b.in_place() -= a); }
void step_of_many(optim::adamw& optimizer, const std::vector<leaf>& parameters) {
  optimizer.add(parameters);
  optimizer.step();
}

// Eight elements at a time.
using half_vector = tensor<sinter::half, 1, cuda<0>>;
using bfloat16_leaf = variable<bfloat16, 1, cuda<0>>;
half_vector gated(const half_vector& a, const half_vector& b, const half_vector& c) {
  return sigmoid(a * b + c) * 0.5f;
}
void gated_backward(const bfloat16_leaf& a, const bfloat16_leaf& b, const tensor<bfloat16, 1, cuda<0>>& seed) {
  const variable y = tanh(a * b) * b;
  y.backward(seed);
}

// Rows, with the work that follows.
tensor<float, 2, cuda<0>> shares(const tensor<float, 2, cuda<0>>& x) { return softmax(x, 1); }
tensor<float, 2, cuda<0>> normalised(const tensor<float, 2, cuda<0>>& x, const vector& gain, const vector& bias) {
  return layer_norm(x, gain, bias);
}
tensor<bfloat16, 2, cuda<0>> normalised(const tensor<bfloat16, 2, cuda<0>>& x, const tensor<bfloat16, 1, cuda<0>>& gain,
                                        const tensor<bfloat16, 1, cuda<0>>& bias) {
  return layer_norm(x, gain, bias);
}
tensor<double, 2, cuda<0>> normalised(const tensor<double, 2, cuda<0>>& x, const tensor<double, 1, cuda<0>>& gain,
                                      const tensor<double, 1, cuda<0>>& bias) {
  return layer_norm(x, gain, bias);
}
tensor<sinter::half, 2, cuda<0>> shares(const tensor<sinter::half, 2, cuda<0>>& x, const half_vector& a,
                                        const half_vector& b) {
  return log_softmax(x * a + b, 1);
}
tensor<float, 2, cuda<0>> gated_rows(const tensor<float, 2, cuda<0>>& x, const tensor<float, 2, cuda<0>>& m,
                                     const vector& gain, const vector& bias) {
  return layer_norm(x + m, gain, bias) * sigmoid(m) + x;
}

// Folds.
tensor<float, 0, cuda<0>> sum_of_squares(const tensor<float, 2, cuda<0>>& x) { return sum(square(x)); }
vector column_sums(const tensor<float, 2, cuda<0>>& x, const tensor<float, 2, cuda<0>>& y) { return sum(x * y, 0); }
vector column_means(const tensor<float, 2, cuda<0>>& x) { return mean(x, 0); }
half_vector half_means(const tensor<sinter::half, 2, cuda<0>>& x) { return mean(x, 1); }
void through_rows(const variable<float, 2, cuda<0>>& x, const variable<float, 2, cuda<0>>& w,
                  const tensor<std::int64_t, 1, cuda<0>>& labels) {
  const variable loss = cross_entropy(x * w, labels);
  loss.backward();
}
void through_rows(const variable<double, 2, cuda<0>>& x, const tensor<double, 2, cuda<0>>& seed) {
  const variable y = log_softmax(x, 1);
  y.backward(seed);
}

// What searches.
values_and_indices<tensor<float, 2, cuda<0>>> best(const tensor<float, 2, cuda<0>>& x) { return topk(x, 8, 1); }

// Random numbers.
vector normals(generator& gen, index_t n) { return randn<float, cuda<0>>(gen, {n}); }
half_vector masked(const half_vector& x, generator& gen) { return dropout(x, 0.1, gen); }
void masked_backward(const leaf& x, const vector& seed, generator& gen) {
  const variable y = dropout(relu(x), 0.1, gen);
  y.backward(seed);
}

// Many operands, of more registers.
using cube = tensor<float, 3, cuda<0>>;
template <class X>
auto eight(const X* t) {
  return t[0] * t[1] + t[2] * t[3].transpose(0, 1) + t[4] * t[5] + t[6] * t[7].transpose(1, 2);
}
tensor<float, 2, cuda<0>> sums_of_many(const cube* t) { return sum(eight(t) + t[8] * t[9] + t[10] * t[11], 2); }
tensor<float, 2, cuda<0>> column_sums_of_many(const cube* t) { return sum(eight(t) + t[8] * t[9] + t[10] * t[11], 0); }
cube shares_of_many(const cube* t) { return softmax(eight(t) + t[8] * t[9] + t[10] * t[11], 2); }
cube sums_up_to_many(const cube* t) { return cumsum(eight(t) + t[8] * t[9] + t[10] * t[11], 2); }
void many_backward(const variable<float, 3, cuda<0>>* v, const leaf& bias, const cube& seed) {
  const variable y = tanh(v[0] * v[1] + v[2] * v[3] + v[4] * v[5]) * v[8] + v[9] * v[6] + v[10] * v[7] + v[11] * bias;
  y.backward(seed);
}
using half_cube = tensor<sinter::half, 3, cuda<0>>;
tensor<sinter::half, 2, cuda<0>> sums_of_many(const half_cube* t) { return sum(eight(t), 0); }
half_cube shares(const half_cube& x) { return softmax(x, 2); }
half_cube masked(const half_cube* t, generator& gen) { return dropout(t[0] * t[1] + t[2] * t[3], 0.1, gen); }
cube running(const cube* t) { return cummax(eight(t), 2).values; }

// Padding and resizing.
using images = tensor<float, 4, cuda<0>>;
images resized(const images& x) { return interpolate(x, {.scale_factor = 2, .mode = interpolation::bicubic}); }
void through_resized(const variable<float, 4, cuda<0>>& x, const images& seed) {
  const variable y = interpolate(x, {.scale_factor = 2, .mode = interpolation::bilinear});
  y.backward(seed);
}
void through_framed(const variable<double, 3, cuda<0>>& x, const tensor<double, 3, cuda<0>>& seed) {
  const variable y = pad(x, {1, 2}, pad_mode::reflect);
  y.backward(seed);
}
tensor<double, 3, cuda<0>> resized(const tensor<double, 3, cuda<0>>& x) {
  return interpolate(x, {.size = 9, .mode = interpolation::linear});
}

// Attention: its tiles fill the registers.
template <class T>
using heads = variable<T, 4, cuda<0>>;
void attend(const heads<float>& q, const heads<float>& k, const heads<float>& v, const tensor<float, 4, cuda<0>>& g) {
  const variable y = attention(q, k, v, {.causal = true});
  y.backward(g);
}
void attend(const heads<bfloat16>& q, const heads<bfloat16>& k, const heads<bfloat16>& v,
            const tensor<bool, 2, cuda<0>>& mask, generator& gen, const tensor<bfloat16, 4, cuda<0>>& g) {
  const variable y = attention(q, k, v, mask, {.dropout = 0.1}, gen);
  y.backward(g);
}
struct soft_cap {
  template <class V, class P>
  constexpr auto operator()(V s, const P&) const {
    return 50 * math::tanh(s / 50);
  }
};
void attend(const heads<double>& q, const heads<double>& k, const heads<double>& v,
            const variable<double, 2, cuda<0>>& mask, const tensor<double, 4, cuda<0>>& g) {
  const variable y = attention(q, k, v, mask, soft_cap());
  y.backward(g);
}
