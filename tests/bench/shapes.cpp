// tests/bench/shapes.cpp: convolutions, their two gradients, and products, of shapes that a file names.
//
// shapes.py compiles it beside rows_main.cpp. A line of the file is "conv" and the batch, channels, height, width,
// filters, extents of the kernel, padding and strides, or "product" and M, N, K and whether A and B are transposed.
#include <fstream>
#include <sstream>

#include <sinter/sinter.hpp>

#include "rows.hpp"

using namespace sinter;

namespace {

using images = tensor<float, 4>;

/// Images as a network has them: pictures of few channels row-major, others channels last.
images random_images(generator& gen, index_t n, index_t c, index_t h, index_t w) {
  const images x = randn(gen, {n, c, h, w});
  return c <= 4 ? x : x.to_memory_format(channels_last);
}

void add_convolution(std::vector<row>& rows, generator& gen, const std::string& name, std::istream& in) {
  index_t n, c, h, w, f, r, s;
  conv_options<2> options;
  in >> n >> c >> h >> w >> f >> r >> s;
  index_t pad[2], stride[2];
  in >> pad[0] >> pad[1] >> stride[0] >> stride[1];
  options.padding = {pad[0], pad[1]};
  options.stride = {stride[0], stride[1]};
  const images x = random_images(gen, n, c, h, w);
  const images weights = randn(gen, {f, c, r, s});
  rows.push_back({name + " forward", 1, 0, [=] { const images y = conv2d(x, weights, options); }});
  const auto with_gradient = [&](const char* pass, auto a, auto b, auto leaf) {
    const auto y = eval(conv2d(a, b, options));
    const auto g = random_images(gen, y.size(0), y.size(1), y.size(2), y.size(3));
    rows.push_back({name + pass, 1, 0, [=]() mutable {
                      leaf.zero_grad();
                      y.backward(g, {.retain_graph = true});
                    }});
  };
  const variable<float, 4> of_x(x), of_weights(weights);
  with_gradient(" data", of_x, weights, of_x);
  with_gradient(" weights", x, of_weights, of_weights);
}

void add_product(std::vector<row>& rows, generator& gen, const std::string& name, std::istream& in) {
  index_t m, n, k;
  bool transposed_a, transposed_b;
  in >> m >> n >> k >> transposed_a >> transposed_b;
  const auto matrix = [&gen](index_t height, index_t width, bool transposed) -> tensor<float, 2> {
    if (!transposed) return randn(gen, {height, width});
    return tensor<float, 2>(randn(gen, {width, height})).T();
  };
  const auto a = matrix(m, k, transposed_a), b = matrix(k, n, transposed_b);
  rows.push_back({name, 3, 0, [=] { const tensor<float, 2> c = matmul(a, b); }});
}

}  // namespace

std::vector<row> make_rows(const char* file) {
  generator gen(1);
  std::vector<row> rows;
  std::ifstream lines(file);
  for (std::string line, kind; std::getline(lines, line);) {
    std::istringstream in(line);
    in >> kind;
    if (kind == "conv") add_convolution(rows, gen, line, in);
    else add_product(rows, gen, line, in);
  }
  return rows;
}
