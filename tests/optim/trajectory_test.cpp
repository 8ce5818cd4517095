// tests/optim/trajectory_test.cpp: optimizers go where PyTorch's go.
#include "../catch.hpp"
#include "reference.hpp"

using namespace sinter;

namespace {

template <class T, device D, class Make>
void follow(const std::vector<double>& expected, double tolerance, const Make& make) {
  auto start = tensor<T, 1>::uninitialized({{5}});
  for (int i = 0; i < 5; ++i) start(i) = static_cast<T>(std::sin(i + 1));
  const variable<T, 1, D> w = start.template to<D>();
  auto optimizer = make(w);
  REQUIRE(expected.size() == 50);
  for (int t = 0; t < 10; ++t) {
    auto g = tensor<T, 1>::uninitialized({{5}});
    for (int i = 0; i < 5; ++i) g(i) = static_cast<T>((1 + i / 10.0) * std::cos(3 * t + i) / (1 + t));
    set_gradient(w, g.template to<D>());
    optimizer.step();
    for (int i = 0; i < 5; ++i) {
      INFO("step " << t << ", parameter " << i);
      CHECK(static_cast<double>(w(i)) ==
            Approx(expected[static_cast<std::size_t>(5 * t + i)]).epsilon(tolerance).margin(tolerance));
    }
  }
}

template <class T, device D>
void follow_all(double tolerance) {
  const auto rows = table("trajectories.csv");
  CHECK(rows.size() == 27);
  const auto run = [&](const std::string& name, const auto& make) {
    INFO(name);
    follow<T, D>(rows.at(name), tolerance, make);
  };
  run("sgd", [](const auto& w) { return optim::sgd(w, {.lr = 0.1}); });
  run("sgd_decay", [](const auto& w) { return optim::sgd(w, {.lr = 0.1, .weight_decay = 0.05}); });
  run("sgd_momentum", [](const auto& w) { return optim::sgd(w, {.lr = 0.1, .momentum = 0.9}); });
  run("sgd_dampening", [](const auto& w) {
    return optim::sgd(w, {.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01});
  });
  run("sgd_nesterov", [](const auto& w) {
    return optim::sgd(w, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  });
  run("adam", [](const auto& w) { return optim::adam(w, {.lr = 0.05}); });
  run("adam_all", [](const auto& w) {
    return optim::adam(w, {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1});
  });
  run("adamw", [](const auto& w) { return optim::adamw(w, {.lr = 0.05}); });
  run("adamw_all", [](const auto& w) {
    return optim::adamw(w, {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.3});
  });
  run("adagrad", [](const auto& w) { return optim::adagrad(w, {.lr = 0.1}); });
  run("adagrad_all", [](const auto& w) {
    return optim::adagrad(
        w, {.lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.1, .initial_accumulator_value = 0.3, .eps = 1e-3});
  });
  run("adadelta", [](const auto& w) { return optim::adadelta(w); });
  run("adadelta_all",
      [](const auto& w) { return optim::adadelta(w, {.lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.1}); });
  run("adamax", [](const auto& w) { return optim::adamax(w, {.lr = 0.05}); });
  run("adamax_all", [](const auto& w) {
    return optim::adamax(w, {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1});
  });
  run("nadam", [](const auto& w) { return optim::nadam(w, {.lr = 0.05}); });
  run("nadam_all", [](const auto& w) {
    return optim::nadam(
        w, {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1, .momentum_decay = 0.1});
  });
  run("radam", [](const auto& w) { return optim::radam(w, {.lr = 0.05}); });
  run("radam_all", [](const auto& w) {
    return optim::radam(w, {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1});
  });
  run("rmsprop", [](const auto& w) { return optim::rmsprop(w, {.lr = 0.02}); });
  run("rmsprop_centered",
      [](const auto& w) { return optim::rmsprop(w, {.lr = 0.02, .weight_decay = 0.1, .centered = true}); });
  run("rmsprop_momentum",
      [](const auto& w) { return optim::rmsprop(w, {.lr = 0.02, .alpha = 0.9, .eps = 1e-4, .momentum = 0.8}); });
  run("rmsprop_all", [](const auto& w) {
    return optim::rmsprop(w, {.lr = 0.02, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.8, .centered = true});
  });
  run("lamb", [](const auto& w) { return optim::lamb(w, {.lr = 0.05}); });
  run("lamb_all", [](const auto& w) {
    return optim::lamb(w, {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1});
  });
  run("lamb_plain", [](const auto& w) { return optim::lamb(w, {.lr = 0.05, .weight_decay = 0}); });
  run("lamb_adapt",
      [](const auto& w) { return optim::lamb(w, {.lr = 0.05, .weight_decay = 0, .always_adapt = true}); });
}

/// The same of a matrix, row-major or transposed in memory.
template <class T, device D, class Make>
void follow_matrix(const std::string& name, index_t rows, double tolerance, const Make& make) {
  const std::vector<double> expected = table("matrices.csv").at(name);
  REQUIRE(expected.size() == 60);
  const index_t columns = 6 / rows;
  for (const bool by_columns : {false, true}) {
    INFO(name << (by_columns ? ", transposed in memory" : ""));
    const auto matrix = [&](const auto& at) {
      tensor<T, 2> m = tensor<T, 2>::uninitialized({{by_columns ? columns : rows, by_columns ? rows : columns}});
      if (by_columns) m = m.transpose();
      for (index_t i = 0; i < 6; ++i) m(i / columns, i % columns) = static_cast<T>(at(static_cast<double>(i)));
      return m.template to<D>();
    };
    const variable<T, 2, D> w = matrix([](double i) { return std::sin(i + 1); });
    REQUIRE(w.value().is_contiguous() != by_columns);
    auto optimizer = make(w);
    for (int t = 0; t < 10; ++t) {
      set_gradient(w, matrix([t](double i) { return (1 + i / 10) * std::cos(3 * t + i) / (1 + t); }));
      optimizer.step();
      INFO("step " << t);
      for (index_t i = 0; i < 6; ++i)
        CHECK(static_cast<double>(w(i / columns, i % columns)) ==
              Approx(expected[static_cast<std::size_t>(6 * t + i)]).epsilon(tolerance).margin(tolerance));
    }
  }
}

template <class T, device D>
void follow_matrices(double tolerance) {
  CHECK(table("matrices.csv").size() == 6);
  const auto plain = [](const auto& w) { return optim::muon(w, {.lr = 0.1}); };
  follow_matrix<T, D>("muon_2x3", 2, tolerance, plain);
  follow_matrix<T, D>("muon_3x2", 3, tolerance, plain);
  follow_matrix<T, D>("muon_2x3_bfloat16", 2, 0.05, plain);
  follow_matrix<T, D>("muon_3x2_all", 3, tolerance, [](const auto& w) {
    return optim::muon(w, {.lr = 0.1,
                           .weight_decay = 0.3,
                           .momentum = 0.5,
                           .nesterov = false,
                           .ns_coefficients = {2, -1.5, 0.5},
                           .eps = 0.5,
                           .ns_steps = 3,
                           .adjust_lr_fn = optim::muon_rate::match_rms_adamw});
  });
  follow_matrix<T, D>("muon_2x3_spectral", 2, tolerance, [](const auto& w) {
    return optim::muon(w, {.lr = 0.1, .adjust_lr_fn = optim::muon_rate::spectral_unclamped});
  });
  follow_matrix<T, D>("lamb_2x3", 2, tolerance, [](const auto& w) { return optim::lamb(w, {.lr = 0.05}); });
}

}  // namespace

TEST_CASE("optimizers go where PyTorch's go") { follow_all<double, cpu>(1e-12); }
TEST_CASE("optimizers go the same way in float on another device") { follow_all<float, numa<1>>(2e-5); }
TEST_CASE("optimizers of matrices go where PyTorch's go") { follow_matrices<double, cpu>(1e-12); }
TEST_CASE("optimizers of matrices go the same way in float on another device") {
  follow_matrices<float, numa<1>>(1e-4);
}
