// tests/gpu/bench.cu: times fused statements on a GPU beside a copy of the same memory; prints name, milliseconds,
// bytes.
#include <string>

#include "bench_folds.hpp"

using namespace sinter;
using namespace bench;

namespace {

/// The numbers of elements of the parameters of ResNet-50 (He et al., 2015, table 1).
std::vector<index_t> resnet50_sizes() {
  std::vector<index_t> sizes;
  const auto convolution = [&](index_t in, index_t out, index_t side) {
    sizes.insert(sizes.end(), {out * in * side * side, out, out});  // with the scale and shift of its batch norm
  };
  convolution(3, 64, 7);
  index_t in = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const index_t width = index_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      convolution(in, width, 1);
      convolution(width, width, 3);
      convolution(width, 4 * width, 1);
      if (block == 0) convolution(in, 4 * width, 1);
      in = 4 * width;
    }
  }
  sizes.insert(sizes.end(), {1000 * 2048, 1000});
  return sizes;
}

}  // namespace

int main() {
  if (!available<g0>()) {
    std::fprintf(stderr, "bench: there is no GPU\n");
    return 1;
  }
  generator gen(1);
  const index_t n = index_t{64} << 20;
  const double element = 4.0 * static_cast<double>(n);
  const auto draw = [&](index_t count) { return randn<float>(gen, {count}).to<g0>(); };
  {
    const auto a = draw(n), b = draw(n), c = draw(n), d = draw(n);
    auto y = empty<float, g0>({n});
    report("copy",
           median_ms(15,
                     [&] {
                       cuda_impl::check(cudaMemcpyAsync(detail::access::data(y), detail::access::data(a),
                                                        static_cast<std::size_t>(n) * 4, cudaMemcpyDeviceToDevice,
                                                        cuda_impl::context_of<g0>().stream()),
                                        "bench");
                     }),
           2 * element);
    report("sinter a+b", median_ms(15, [&] { y = a + b; }), 3 * element);
    report("sinter sigmoid(a*b+c)*tanh(d)", median_ms(15, [&] { y = sigmoid(a * b + c) * tanh(d); }), 5 * element);
    const variable va = a, vb = b, vc = c, vd = d;
    const auto seed = ones_like(a);
    const variable r = sigmoid(va * vb + vc) * tanh(vd);
    report("sinter backward of it",
           median_ms(15,
                     [&] {
                       for (const auto& v : {va, vb, vc, vd}) v.zero_grad();
                       r.backward(seed, {.retain_graph = true});
                     }),
           9 * element);
    time_folds(a, b);
    report("sinter cumsum 64 M", median_ms(15, [&] { y = cumsum(a, 0); }), 2 * element);
  }
  {
    const index_t rows = 16384, columns = 4096;
    const auto x = draw(rows * columns).reshape({rows, columns});
    const auto gain = draw(columns), bias = draw(columns);
    tensor<float, 2, g0> z;
    const double bytes = 8.0 * static_cast<double>(rows * columns);
    report("sinter softmax 16384x4096", median_ms(15, [&] { z = softmax(x, 1); }), bytes);
    report("sinter layer_norm 16384x4096", median_ms(15, [&] { z = layer_norm(x, gain, bias); }), bytes);
    report("sinter relu(x+bias) 16384x4096", median_ms(15, [&] { z = relu(x + bias); }), bytes);
    const auto long_rows = x.reshape({1024, 65536});
    const auto classes = eval(cast<std::int64_t>(rand<float>(gen, {1024}) * 65536.f)).to<g0>();
    report("sinter softmax 1024x65536", median_ms(15, [&] { z = softmax(long_rows, 1); }), bytes);
    report("sinter cross_entropy 1024x65536",
           median_ms(15, [&] { const tensor loss = cross_entropy(long_rows, classes); }), bytes / 2);
    tensor<float, 1, g0> sums;
    report("sinter sum(x,0) 16384x4096", median_ms(15, [&] { sums = sum(x, 0); }), bytes / 2);
    report("sinter topk 8 of 16384x4096", median_ms(15, [&] { const auto best = topk(x, 8, 1); }), bytes / 2);
    const auto one_line = x.slice(0, 0, 4).reshape({1, 16384}), few_lines = x.slice(0, 0, 256).reshape({64, 16384});
    report("sinter topk 8 of 1x16384", median_ms(15, [&] { const auto best = topk(one_line, 8, 1); }), 0);
    report("sinter topk 8 of 64x16384", median_ms(15, [&] { const auto best = topk(few_lines, 8, 1); }), 0);
    report("sinter topk 8 of 4096 zeros",
           median_ms(15, [&] { const auto best = topk(zeros<float, g0>({1, 4096}), 8, 1); }), 0);
    const auto flat = x.slice(0, 0, 4096).reshape({index_t{16} << 20});
    const auto sort_all = [&] { const auto in_order = sort(flat, 0); };
    const auto cub = cuda_impl::other_sorter.exchange(nullptr);
    report("sinter sort 16 M", median_ms(7, sort_all), 0);
    cuda_impl::other_sorter = cub;
    if (cub != nullptr) report("sinter sort 16 M by CUB", median_ms(7, sort_all), 0);
    report("sinter cumsum 16 M", median_ms(15, [&] { const tensor sums_so_far = cumsum(flat, 0); }), bytes / 4);
    const variable tracked_x = x;
    const variable tracked_bias = bias;
    const variable r = relu(tracked_x + tracked_bias);
    const variable shares = softmax(tracked_x, 1);
    const auto seed = ones_like(x);
    // Reads x and the gradient of the result, writes that of x; that of the bias is a sum.
    report("sinter backward of relu(x+bias)",
           median_ms(15,
                     [&] {
                       tracked_x.zero_grad();
                       tracked_bias.zero_grad();
                       r.backward(seed, {.retain_graph = true});
                     }),
           1.5 * bytes);
    // Reads the result and its gradient, writes that of x.
    report("sinter backward of softmax",
           median_ms(15,
                     [&] {
                       tracked_x.zero_grad();
                       shares.backward(seed, {.retain_graph = true});
                     }),
           1.5 * bytes);
  }
  {
    std::vector<variable<float, 1, g0>> parameters;
    index_t elements = 0;
    for (const index_t size : resnet50_sizes()) {
      parameters.push_back(draw(size));
      sum(parameters.back() * parameters.back()).backward();
      elements += size;
    }
    if (elements != 25557032) {
      std::fprintf(stderr, "bench: ResNet-50 with %lld parameters\n", static_cast<long long>(elements));
      return 1;
    }
    optim::adamw optimizer(parameters, {.lr = 1e-3});
    // Reads the parameter, its gradient and both averages, writes all but the gradient.
    report("sinter adamw resnet50", median_ms(15, [&] { optimizer.step(); }), 7 * 4.0 * static_cast<double>(elements));
  }
  for (const index_t batch : {128, 1024}) {
    nn::sequential model{
        nn::linear<float, g0>(784, 2048, gen),  nn::relu(), nn::linear<float, g0>(2048, 2048, gen), nn::relu(),
        nn::linear<float, g0>(2048, 2048, gen), nn::relu(), nn::linear<float, g0>(2048, 10, gen)};
    optim::sgd optimizer(model, {.lr = 0.01});
    const auto x = draw(batch * 784).reshape({batch, 784});
    const auto labels = eval(cast<std::int64_t>(rand<float>(gen, {batch}) * 10.f)).to<g0>();
    variable<float, 0, g0> loss;
    const auto step = [&] {
      optimizer.zero_grad();
      loss = cross_entropy(model(x), labels);
      loss.backward();
      optimizer.step();
    };
    const std::string name = "sinter mlp batch " + std::to_string(batch);
    report(name.c_str(), median_ms(31, step), 0);
    {
      const use_matmul_precision fast(matmul_precision::tf32);
      report((name + " tf32").c_str(), median_ms(31, step), 0);
    }
    const auto captured = capture<g0>(step);
    report((name + " captured").c_str(), median_ms(31, [&] { captured.replay(); }), 0);
  }
  synchronize<g0>();
}
