// net.cpp: the functions of net.h. No exception leaves them: its text is kept for net_error().
#include "net.h"

#include <sinter/sinter.hpp>

#include <exception>
#include <string>

using namespace sinter;

struct net {
  explicit net(index_t width, generator gen)
      : model{nn::linear(2, width, gen), nn::tanh(), nn::linear(width, width, gen), nn::tanh(),
              nn::linear(width, 2, gen)},
        optimizer(model, {.lr = 0.01}) {}

  nn::sequential<nn::linear<>, nn::tanh, nn::linear<>, nn::tanh, nn::linear<>> model;
  optim::adam optimizer;
};

namespace {

thread_local std::string problem;

/// What `work` returns, or `otherwise` where it throws.
template <class F, class R>
R guarded(const F& work, R otherwise) {
  try {
    return work();
  } catch (const std::exception& e) {
    problem = e.what();
  }
  return otherwise;
}

/// The points as a tensor on the caller's memory, which is only read.
tensor<float, 2> shown(const float* points, index_t n) { return wrap(const_cast<float*>(points), {n, 2}); }

}  // namespace

net* net_new(std::int64_t width, std::uint64_t seed) {
  return guarded([&] { return new net(width, generator(seed)); }, static_cast<net*>(nullptr));
}

void net_free(net* one) { delete one; }

int net_fit(net* one, const float* points, const std::int64_t* classes, std::int64_t n, int steps, double* loss) {
  return guarded(
      [&] {
        const tensor x = shown(points, n);
        const tensor y = wrap(const_cast<std::int64_t*>(classes), {n});
        for (int step = 0; step < steps; ++step) {
          variable l = cross_entropy(one->model(x), y);
          one->optimizer.zero_grad();
          l.backward();
          one->optimizer.step();
          *loss = l.item();
        }
        return 0;
      },
      -1);
}

int net_classify(const net* one, const float* points, std::int64_t n, std::int64_t* classes) {
  return guarded(
      [&] {
        wrap(classes, {n}).in_place() = argmax(infer(one->model)(shown(points, n)), 1);
        return 0;
      },
      -1);
}

const char* net_error(void) { return problem.c_str(); }
