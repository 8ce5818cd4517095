// tests/ranks/distributed_test.cpp: several ranks train one model, against one rank with all samples.
#include <sinter/data.hpp>
#include <sinter/parallel.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <map>

#include "../catch.hpp"
#include "communicator_checks.hpp"

using namespace sinter;
using communicator_checks::has;
using communicator_checks::require;
using communicator_checks::text_of_error;
using namespace std::chrono_literals;

// Outside of the namespace: nvcc warns there of its visit(), which nothing calls.
struct heads_on : nn::module<heads_on> {
  nn::linear<double> body;
  nn::offloaded<numa<0>, nn::linear<double>> heads;
  SINTER_MEMBERS(body, heads);
};

namespace {

using matrix = tensor<double, 2>;
using labels = tensor<std::int64_t, 1>;

/// A stack with a batch norm, a weight that two layers share, a float layer, and layers that a step may leave out.
template <device D = cpu, class Kind = nn::tracked>
struct net : nn::module<net<D, Kind>> {
  nn::linear<double, D, Kind> first, middle, last, extra, unused;
  nn::parameter<float, 1, D, Kind> scale;
  nn::batch_norm1d<double, D, Kind> norm;

  net() = default;
  explicit net(generator& gen)
      : first(5, 6, gen),
        middle(6, 6, gen),
        last(6, 3, gen),
        extra(6, 6, gen),
        unused(6, 6, gen),
        scale(ones<float>({6})),
        norm(6) {}

  variable<double, 2> run(const matrix& x, bool with_norm, bool with_extra) const {
    variable<double, 2> h = tanh(first(x));
    if (with_norm) h = norm(h);
    h = tanh(middle(h));
    h = tanh(middle(h)) * cast<double>(scale);
    if (with_extra) h = h + extra(h);
    return last(h);
  }
  SINTER_MEMBERS(first, middle, last, extra, unused, scale, norm);
};

struct batch_of {
  matrix x;
  labels y;
  batch_of(index_t begin, index_t end, index_t step = 1) {
    const index_t n = (end - begin + step - 1) / step;
    x = zeros<double>({n, 5});
    y = zeros<std::int64_t>({n});
    for (index_t i = 0; i < n; ++i) {
      const index_t sample = begin + i * step;
      for (index_t j = 0; j < 5; ++j) x(i, j) = std::sin(double(sample * 5 + j));
      y(i) = sample * 7 % 3;
    }
  }
  index_t size() const { return y.extent(0); }
};

variable<double, 0> loss_of(const net<>& m, const batch_of& b, bool with_norm = false, bool with_extra = true) {
  return cross_entropy(m.run(b.x, with_norm, with_extra), b.y);
}
net<> make(std::uint64_t seed = 1) {
  generator gen(seed);
  return net<>(gen);
}
std::map<std::string, std::vector<double>> gradients(const net<>& m) {
  std::map<std::string, std::vector<double>> all;
  m.for_each_parameter([&](const std::string& name, const auto& p) {
    if (!p.has_grad()) return;
    const tensor g = p.grad().contiguous().flatten();
    auto& to = all[name];
    for (index_t i = 0; i < g.numel(); ++i) to.push_back(double(g(i)));
  });
  return all;
}
void require_near(const net<>& m, const std::map<std::string, std::vector<double>>& want, double tolerance = 1e-6) {
  const auto got = gradients(m);
  for (const auto& [name, values] : got) require(want.count(name) == 1, name + " has a gradient");
  for (const auto& [name, values] : want) {
    require(got.count(name) == 1, name + " has no gradient");
    for (std::size_t i = 0; i < values.size(); ++i)
      require(std::abs(got.at(name)[i] - values[i]) <= tolerance,
              name + ": " + std::to_string(got.at(name)[i]) + " for " + std::to_string(values[i]));
  }
}
}  // namespace

TEST_CASE("distributed: the gradients of all samples, whatever the shards and buckets", "[parallel][distributed]") {
  const batch_of all(0, 11);
  net<> one = make();
  loss_of(one, all).backward();
  const auto want = gradients(one);
  REQUIRE(want.count("unused.weight") == 0);
  for (const int R : {1, 2, 3, 4})
    for (const index_t bytes : {1, 300, 1 << 20}) {
      INFO(R << " ranks, buckets of " << bytes << " bytes");
      CHECK_NOTHROW(run_ranks(R, {}, [&](thread_communicator world) {
        net<> model = make(std::uint64_t(world.rank() + 1));  // rank 0's values are taken
        nn::distributed ranks(model, world, {.bucket_bytes = bytes, .first_bucket_bytes = bytes});
        const batch_of mine(world.rank(), 11, R);
        for (int step = 0; step < 3; ++step) {  // in the first buckets, then in those in ready order
          model.zero_grad();
          ranks.backward(loss_of(model, mine), mine.size());
          require_near(model, want);
        }
        require(ranks.report().steps == 3 && ranks.report().samples == 33, "report");
        require(ranks.trace().buckets.size() >= (bytes == 1 ? 11u : 2u), "buckets");
      }));
    }
}

TEST_CASE("distributed: one rank computes the same bits as none", "[parallel][distributed]") {
  const batch_of all(0, 9);
  net<> plain = make(), model = make();
  thread_communicator world = thread_communicator::make(1)[0];
  nn::distributed ranks(model, world);
  optim::adam a(plain), b(model);
  for (int step = 0; step < 4; ++step) {
    a.zero_grad();
    b.zero_grad();
    loss_of(plain, all, true).backward();
    ranks.backward(loss_of(model, all, true), 9);
    REQUIRE(gradients(model) == gradients(plain));
    a.step();
    b.step();
  }
  CHECK(ranks.report().hidden() <= 1);
  const tensor x = plain.norm.running_var.value(), y = model.norm.running_var.value();
  CHECK(std::equal(x.begin(), x.end(), y.begin()));
}

TEST_CASE("distributed: a branch that one rank takes, and ranks without samples", "[parallel][distributed]") {
  const batch_of first(0, 4), second(4, 11);
  net<> one = make();
  variable<double, 0> l = (loss_of(one, first, false, true) * 4. + loss_of(one, second, false, false) * 7.) / 11.;
  l.backward();
  const auto want = gradients(one);
  for (const int R : {2, 3})
    CHECK_NOTHROW(run_ranks(R, {}, [&](thread_communicator world) {
      net<> model = make();
      nn::distributed ranks(model, world, {.bucket_bytes = 200, .first_bucket_bytes = 200});
      for (int step = 0; step < 3; ++step) {
        model.zero_grad();
        const int role = (world.rank() + step) % R;  // also rank 0 without samples in the first step or later
        if (role == 0) ranks.backward(loss_of(model, first, false, true), 4);
        if (role == 1) ranks.backward(loss_of(model, second, false, false), 7);
        if (role == 2) {  // a loss that is no number, by a layer that no other rank uses
          variable<double, 0> empty = loss_of(model, batch_of(0, 0)) + sum(model.unused(zeros<double>({0, 6})));
          ranks.backward(empty, 0);
        }
        require_near(model, want);
      }
    }));
}

TEST_CASE("distributed: plain passes add to this rank's gradients, and the next sum takes them along",
          "[parallel][distributed]") {
  const batch_of all(0, 12), rest(12, 24);
  net<> one = make();
  loss_of(one, all).backward();
  loss_of(one, rest).backward();
  const auto both = gradients(one);
  CHECK_NOTHROW(run_ranks(3, {}, [&](thread_communicator world) {
    net<> model = make();
    nn::distributed ranks(model, world, {.bucket_bytes = 300});
    const batch_of mine(world.rank(), 12, 3), later(12 + world.rank(), 24, 3);
    loss_of(model, mine).backward();
    ranks.backward(loss_of(model, later), 4);
    require_near(model, both);
    model.zero_grad();
    ranks.backward(loss_of(model, mine), 4);  // a gradient that was summed stays as it is in a further sum
    ranks.backward(loss_of(model, later), 4);
    require_near(model, both);
  }));
}

TEST_CASE("distributed: sums of gradients that something else has gathered", "[parallel][distributed]") {
  const batch_of all(0, 9);
  net<> one = make();
  loss_of(one, all).backward();
  const auto want = gradients(one);
  CHECK_NOTHROW(run_ranks(2, {}, [&](thread_communicator world) {
    net<> model = make();
    nn::distributed ranks(model, world, {.bucket_bytes = 300});
    const batch_of mine(world.rank(), 9, 2);
    for (int step = 0; step < 5; ++step) {
      model.zero_grad();
      ranks.begin(0);
      if (ranks.samples_of_step() == 0) ranks.begin(mine.size());
      loss_of(model, mine).backward();
      ranks.sum_gradients(mine.size());
      require_near(model, want);
    }
  }));
}

TEST_CASE("distributed: a gradient passes through checkpoint()", "[parallel][distributed]") {
  const batch_of all(0, 10);
  const auto loss = [](const net<>& m, const batch_of& b) {
    variable<double, 2> h = checkpoint([&](const auto& x) { return tanh(m.middle(tanh(m.first(x)))); }, b.x);
    variable<double, 2> h2 = checkpoint(m.middle, h);
    return variable<double, 0>(cross_entropy(m.last(h2), b.y));
  };
  net<> one = make();
  loss(one, all).backward();
  const auto want = gradients(one);
  CHECK_NOTHROW(run_ranks(2, {}, [&](thread_communicator world) {
    net<> model = make();
    nn::distributed ranks(model, world, {.bucket_bytes = 200});
    for (int step = 0; step < 2; ++step) {
      model.zero_grad();
      ranks.backward(loss(model, batch_of(world.rank(), 10, 2)), 5);
      require_near(model, want);
    }
  }));
}

TEST_CASE("distributed: buffers are the mean of the ranks', and untouched ones keep their bits",
          "[parallel][distributed]") {
  std::vector<double> mean(6, 0.);
  for (const auto& [begin, end] : {std::pair{0, 4}, std::pair{4, 11}}) {
    net<> alone = make();
    loss_of(alone, batch_of(begin, end), true);
    for (std::size_t i = 0; i < 6; ++i)
      mean[i] += double(end - begin) / 11 * alone.norm.running_mean.value()(index_t(i));
  }
  CHECK_NOTHROW(run_ranks(3, {}, [&](thread_communicator world) {
    net<> model = make();
    const batch_of mine = world.rank() == 0 ? batch_of(0, 4) : batch_of(4, 11);
    for (const auto& b : {model.norm.running_mean, model.norm.running_var})
      for (double& v : b.value()) v += 1 / 3.;
    const tensor start = model.norm.running_var.value().clone();
    nn::distributed ranks(model, world);
    ranks.backward(loss_of(model, mine), world.rank() + 1);
    require(std::equal(start.begin(), start.end(), model.norm.running_var.value().begin()), "bits of a buffer");
    for (const auto& b : {model.norm.running_mean, model.norm.running_var})
      for (double& v : b.value()) v -= 1 / 3.;
    if (world.rank() < 2) {
      const variable<double, 0> a = loss_of(model, mine, true);
      ranks.backward(a, mine.size());
    } else {
      ranks.backward(loss_of(model, batch_of(0, 0)), 0);
    }
    for (index_t i = 0; i < 6; ++i)
      require(std::abs(model.norm.running_mean.value()(i) - mean[std::size_t(i)]) < 1e-12, "running mean");
    require(model.norm.num_batches_tracked.value().item() == 1, "number of batches");
    const tensor before = model.norm.running_mean.value().clone();
    model.eval();
    ranks.backward(loss_of(model, batch_of(0, 3), true), world.rank() + 1);
    const tensor now = model.norm.running_mean.value();
    require(std::equal(now.begin(), now.end(), before.begin()), "bits of a buffer");
  }));
}

TEST_CASE("distributed: sync_batch_norm computes as one rank with the whole batch", "[parallel][distributed]") {
  const auto images_of = [](int begin, int step) {
    tensor<double, 4> x = zeros<double>({(7 - begin + step - 1) / step, 2, 3, 3});
    for (index_t i = 0; i < x.extent(0); ++i)
      for (index_t j = 0; j < 18; ++j) x[i].flatten()(j) = std::sin(double((begin + i * step) * 18 + j)) + double(j);
    return x;
  };
  const auto step = [](auto& norm, const auto& x, const auto& backward) {
    variable<double, 4> in(x);
    const variable<double, 4> y = norm(in);
    backward(eval(mean(square(y - 0.3 * cos(y)))));
    return in.grad();
  };
  nn::batch_norm2d<double> one(2);
  one.weight.value() = tensor<double, 1>{1.5, 0.5};
  const tensor want = step(one, images_of(0, 1), [](const auto& l) { l.backward(); });
  const auto reader = infer(one);
  for (const int R : {1, 3, 8})  // the last of 8 has no samples
    CHECK_NOTHROW(run_ranks(R, {}, [&](thread_communicator world) {
      nn::sync_batch_norm norm(world, nn::batch_norm2d<double>(2));
      norm.norm.weight.value() = tensor<double, 1>{1.5, 0.5};
      nn::distributed ranks(norm, world);
      const tensor x = images_of(world.rank(), R);
      const tensor dx = step(norm, x, [&](const auto& l) { ranks.backward(l, x.extent(0)); });
      const auto near = [](double a, double b) { require(std::abs(a - b) < 1e-12, std::to_string(a - b)); };
      for (index_t i = 0; i < dx.extent(0); ++i)
        for (index_t c = 0; c < 2; ++c)
          for (index_t j = 0; j < 9; ++j) near(dx(i, c, j / 3, j % 3), want(world.rank() + i * R, c, j / 3, j % 3));
      for (index_t c = 0; c < 2; ++c) {
        near(norm.norm.weight.grad()(c), one.weight.grad()(c));
        near(norm.norm.bias.grad()(c), one.bias.grad()(c));
        near(norm.norm.running_mean.value()(c), one.running_mean.value()(c));
        near(norm.norm.running_var.value()(c), one.running_var.value()(c));
      }
      require(norm.named_parameters()[0].name == "weight" && norm.named_buffers()[2].name == "num_batches_tracked",
              "names");
      nn::sync_batch_norm flat(world, nn::batch_norm2d<double>(2));
      nn::sync_batch_norm deep(world, nn::batch_norm3d<double>(2));
      const tensor of_flat = eval(flat(x)).value();
      const tensor of_deep = eval(deep(x.unsqueeze(4))).value();
      for (index_t i = 0; i < x.numel(); ++i) near(of_deep.flatten()(i), of_flat.flatten()(i));
      norm.eval();
      const tensor a = eval(infer(norm)(x)), b = eval(reader(x)), c = eval(norm(x)).value();
      for (index_t i = 0; i < a.numel(); ++i) {
        near(a.flatten()(i), c.flatten()(i));
        near(a.flatten()(i), b.flatten()(i));
      }
    }));
}

TEST_CASE("distributed: two forwards before one backward, and a batch norm that one rank leaves out",
          "[parallel][distributed]") {
  CHECK_NOTHROW(run_ranks(2, {}, [&](thread_communicator world) {
    net<> model = make();
    nn::distributed ranks(model, world);
    const batch_of a(world.rank(), 8, 2), b(8 + world.rank(), 16, 2);
    for (int step = 0; step < 2; ++step) {
      const variable<double, 0> first = loss_of(model, a, true), second = loss_of(model, b, true);
      ranks.backward(variable<double, 0>(first + second), 8);
    }
    require(model.norm.num_batches_tracked.value().item() == 4, "number of batches");
  }));
  const std::string text = text_of_error([] {
    run_ranks(2, {.timeout = 5s}, [&](thread_communicator world) {
      nn::sync_batch_norm norm(world, nn::batch_norm1d<double>(5));
      nn::distributed ranks(norm, world);
      const variable<double, 2> x(batch_of(0, 4).x);
      ranks.begin(4);
      variable<double, 0> l = mean(square(x));
      if (world.rank() == 0) l = mean(square(norm(x)));
      ranks.backward(l, 4);
    });
  });
  INFO(text);
  CHECK(has(text, "mismatch: rank 0 calls all_gather"));
  CHECK(has(text, "'moments of a sync_batch_norm'"));
}

TEST_CASE("distributed: run() takes ranks with different numbers of batches", "[parallel][distributed]") {
  struct loader {
    std::vector<batch_of> batches;
    auto begin() const { return batches.begin(); }
    auto end() const { return batches.end(); }
  };
  // The steps, each with all its samples.
  net<> one = make();
  optim::sgd step_one(one, {.lr = 0.1});
  for (const auto& [a, b] : {std::pair{0, 9}, std::pair{9, 18}, std::pair{18, 21}, std::pair{21, 24}}) {
    loss_of(one, batch_of(a, b)).backward();
    step_one.step();
    step_one.zero_grad();
  }
  CHECK_NOTHROW(run_ranks(4, {}, [&](thread_communicator world) {
    net<> model = make();
    nn::distributed ranks(model, world, {.bucket_bytes = 300});
    loader mine;
    if (world.rank() == 0) mine.batches = {{0, 2}, {9, 12}, {18, 21}, {21, 24}};
    if (world.rank() == 1) mine.batches = {{2, 5}, {12, 18}};
    if (world.rank() == 2) mine.batches = {{5, 9}, {0, 0}, {0, 0}};  // rank 3 has none
    optim::sgd optimizer(model, {.lr = 0.1});
    int steps = 0;
    const auto r = ranks.run(
        mine, [&](const batch_of& b) { return loss_of(model, b); },
        [&] {
          optimizer.step();
          optimizer.zero_grad();
          ++steps;
        });
    require(steps == 4 && r.steps == 4 && r.samples == 24 && !r.stopped, "4 steps on each rank");
    require(r.mean_loss > 0.5 && r.mean_loss < 2, "mean loss");
    std::vector<double> got;
    const tensor w = model.first.weight.value(), v = one.first.weight.value();
    for (index_t i = 0; i < 6; ++i) require(std::abs(w(i, 0) - v(i, 0)) < 1e-12, "weights");
  }));
}

TEST_CASE("distributed: 1, 2 and 4 ranks with the same batch have the same losses, dropout included",
          "[parallel][distributed]") {
  const batch_of all(0, 22);
  std::vector<double> want;
  for (const int R : {1, 2, 4})
    CHECK_NOTHROW(run_ranks(R, {}, [&](thread_communicator world) {
      generator gen(3);
      nn::sequential model{nn::linear<double>(5, 7, gen), nn::tanh(), nn::dropout(0.5, gen),
                           nn::linear<double>(7, 3, gen)};
      nn::distributed ranks(model, world);
      optim::sgd optimizer(model, {.lr = 0.2, .momentum = 0.9});
      data_loader loader(tensor_dataset(all.x, all.y),
                         {.batch_size = 8 / R, .shuffle = true, .sampler = distributed_sampler(world, {.pad = false})});
      for (std::size_t epoch = 0; epoch < 3; ++epoch) {
        const auto r = ranks.run(
            loader, [&](const auto& b) { return cross_entropy(model(b.inputs), b.targets); },
            [&] {
              optimizer.step();
              optimizer.zero_grad();
            });
        require(r.steps == 3 && r.samples == 22, "an epoch");
        if (R == 1) want.push_back(r.mean_loss);
        else require(std::abs(r.mean_loss - want[epoch]) < 1e-12, "loss " + std::to_string(r.mean_loss));
      }
    }));
}

TEST_CASE("distributed: dropout draws alike where ranks have no samples in some steps", "[parallel][distributed]") {
  const batch_of all(0, 26);  // 26 = 12 + 12 + 2: the last step has samples for two ranks
  const auto train = [&](thread_communicator& world, bool own_loop, std::uint64_t seed) {
    generator gen(seed);
    nn::sequential model{
        nn::linear<double>(5, 7, gen), nn::dropout(0.3, gen), nn::tanh(),
        nn::any_module<double, 2>(nn::sequential{nn::linear<double>(7, 7, gen), nn::dropout(0.3, gen)}),
        nn::linear<double>(7, 3, gen)};
    nn::distributed ranks(model, world);
    optim::sgd optimizer(model, {.lr = 0.2});
    data_loader loader(
        tensor_dataset(all.x, all.y),
        {.batch_size = 12 / world.size(), .shuffle = true, .sampler = distributed_sampler(world, {.pad = false})});
    const auto step = [&] {
      optimizer.step();
      optimizer.zero_grad();
    };
    const samples_from numbers(world.rank(), world.size());
    const auto loss = [&](const auto& b) { return eval(cross_entropy(model(b.inputs), b.targets)); };
    for (int epoch = 0; epoch < 3; ++epoch) {
      if (!own_loop) {
        require(ranks.run(loader, loss, step).steps == 3, "steps");
        continue;
      }
      int steps = 0;
      for (const auto& b : loader) {
        ranks.backward(loss(b), b.size());
        step();
        ++steps;
      }
      for (; steps < 3; ++steps) {
        ranks.sum_gradients(0);
        step();
      }
    }
    return model.get<0>().weight.value().clone();
  };
  matrix want;
  run_ranks(1, {}, [&](thread_communicator world) { want = train(world, false, 3); });
  for (const int R : {2, 4})
    for (const bool own_loop : {false, true})
      CHECK_NOTHROW(run_ranks(R, {}, [&](thread_communicator world) {
        // Seeds of other ranks do not count: all have the model of rank 0, with its generators.
        const matrix got = train(world, own_loop, world.rank() == 0 ? 3 : 8);
        for (index_t i = 0; i < got.numel(); ++i)
          require(std::abs(got.flatten()(i) - want.flatten()(i)) < 1e-12, "a weight");
      }));
}

TEST_CASE("distributed: one rank asks all to stop", "[parallel][distributed]") {
  CHECK_NOTHROW(run_ranks(3, {}, [&](thread_communicator world) {
    net<> model = make();
    nn::distributed ranks(model, world);
    int steps = 0, stop_at = 4;
    const std::vector<batch_of> batches(10, batch_of(0, 3));
    const auto epoch = [&] {
      return ranks.run(
          batches, [&](const batch_of& b) { return loss_of(model, b); },
          [&] {
            if (++steps == stop_at && world.rank() > 0) ranks.ask_to_stop();
          });
    };
    require(epoch().stopped && steps == 5, "stops after the step that follows");
    require(!epoch().stopped && steps == 15, "the next run takes all batches");
    stop_at = 25;  // the last step of a run
    require(epoch().stopped && steps == 25, "stops at the end");
    require(!epoch().stopped && steps == 35, "and goes on");
  }));
}

TEST_CASE("distributed: models that differ are refused on all ranks", "[parallel][distributed]") {
  const auto text_of = [](auto change) {
    std::vector<std::string> texts(3);
    run_ranks(3, {}, [&](thread_communicator world) {
      generator gen(1);
      nn::module_list<nn::linear<float>> model;
      for (int i = 0; i < 3; ++i) model.push_back(nn::linear<float>(4, 4, gen));
      change(world.rank(), model, gen);
      texts[std::size_t(world.rank())] = text_of_error([&] { nn::distributed ranks(model, world); });
    });
    CHECK(texts[0] == texts[1]);
    CHECK(texts[1] == texts[2]);
    INFO(texts[0]);
    return texts[0];
  };
  const std::string shape = text_of([](int rank, auto& model, generator& gen) {
    if (rank == 2) model[1] = nn::linear<float>(4, 5, gen);
  });
  CHECK(has(shape, "rank 2 has '1.weight', a parameter of shape (5, 4) and type float"));
  CHECK(has(shape, "rank 0 has '1.weight', a parameter of shape (4, 4)"));
  const std::string more = text_of([](int rank, auto& model, generator& gen) {
    if (rank == 1) model.push_back(nn::linear<float>(1, 1, gen));
  });
  CHECK(has(more, "rank 1 has '3.weight', which rank 0 has not"));
  const std::string fewer = text_of([](int rank, auto& model, generator& gen) {
    if (rank == 0) model.push_back(nn::linear<float>(1, 1, gen));
  });
  CHECK(has(fewer, "only rank 0 and not rank 1 has '3.weight'"));
  const std::string tie = text_of([](int rank, auto& model, generator&) {
    if (rank == 1) model[2].weight = model[0].weight;
  });
  CHECK(has(tie, "the same as '0.weight'"));
}

TEST_CASE("distributed: mistakes are refused, and the other ranks are told", "[parallel][distributed]") {
  const auto text_of = [](int throws, auto f) {
    std::string text, other;
    const std::string first = text_of_error([&] {
      run_ranks(2, {.timeout = 5s}, [&](thread_communicator world) {
        net<> model = make();
        nn::distributed ranks(model, world);
        const batch_of b(0, 3);
        ranks.backward(loss_of(model, b), 3);
        const std::string own = text_of_error([&] { f(world.rank(), model, ranks, b); });
        (world.rank() == throws ? text : other) = own;
        require(gradients(model).empty(), "no gradient is left");
      });
    });
    CHECK(first == "");
    INFO(text << " / " << other);
    CHECK(has(other, "aborted by rank"));
    return text;
  };
  using model_ref = net<>&;
  CHECK(has(text_of(1,
                    [](int rank, model_ref model, auto& ranks, const batch_of& b) {
                      if (rank == 1) model.last.bias = zeros<double>({3});
                      ranks.backward(loss_of(model, b), 3);
                    }),
            "'last.bias' of shape (3,) was replaced"));
  CHECK(has(text_of(0,
                    [](int rank, model_ref model, auto& ranks, const batch_of& b) {
                      ranks.begin(3);
                      ranks.backward(loss_of(model, b), rank == 0 ? 2 : 3);
                    }),
            "begin() was told 3 samples of this rank, and the sum of gradients 2"));
  CHECK(has(text_of(1,
                    [](int rank, model_ref model, auto& ranks, const batch_of& b) {
                      variable<double, 0> l = loss_of(model, b);
                      if (rank == 1) l.backward();  // the graph is gone
                      ranks.backward(l, 3);
                    }),
            "backward"));
  const auto loss_of_each = [](int rank, model_ref model, const batch_of& b) {
    const variable<double, 1> each = cross_entropy(model.run(b.x, false, true), b.y, reduction::none);
    return rank == 1 ? each : each.slice(0, 0, 1);
  };
  const std::string not_one = "distributed: a loss of shape (3,); it must be one number, the mean over the samples";
  CHECK(has(text_of(1, [&](int rank, model_ref model, auto& ranks,
                           const batch_of& b) { ranks.backward(loss_of_each(rank, model, b), 3); }),
            not_one));
  CHECK(has(text_of(1,
                    [&](int rank, model_ref model, auto& ranks, const batch_of& b) {
                      ranks.run(
                          std::vector<batch_of>(3, b),
                          [&](const batch_of& own) { return loss_of_each(rank, model, own); }, [] {});
                    }),
            not_one));
  CHECK(has(text_of(0,
                    [](int rank, model_ref model, auto& ranks, const batch_of& b) {
                      ranks.run(
                          std::vector<batch_of>(3, b),
                          [&](const batch_of& own) {
                            if (rank == 0) throw value_error("a loss that fails");
                            return loss_of(model, own);
                          },
                          [] {});
                    }),
            "a loss that fails"));
}

TEST_CASE("distributed: what cannot be wrapped", "[parallel][distributed]") {
  thread_communicator world = thread_communicator::make(1)[0];
  net<> model = make();
  {
    nn::distributed ranks(model, world);
    CHECK(has(text_of_error([&] { nn::distributed again(model, world); }), "belongs to another distributed"));
  }
  world = thread_communicator::make(1)[0];
  loss_of(model, batch_of(0, 3)).backward();
  const auto before = gradients(model);
  {
    nn::distributed ranks(model, world);
    CHECK(gradients(model) == before);
  }
  CHECK(gradients(model) == before);  // in memory of their own again
  model.extra.weight = variable<double, 2>(model.middle.weight.value());
  CHECK(has(text_of_error([&] { nn::distributed ranks(model, world); }),
            "'extra.weight' of shape (6, 6) is a second variable"));
  world = thread_communicator::make(1)[0];
  CHECK_THROWS_AS((nn::distributed<net<>, thread_communicator>(model, world, {.bucket_bytes = 0})), value_error);
}

TEST_CASE("distributed: sums of bfloat16", "[parallel][distributed]") {
  CHECK_NOTHROW(run_ranks(3, {}, [&](thread_communicator world) {
    generator gen(1);
    nn::linear<float> exact(20, 30, gen), model = exact.to<cpu>();
    nn::distributed whole(exact, world), halves(model, world, {.compress = true});
    generator data(std::uint64_t(world.rank() + 1));
    const tensor x = randn<float>(data, {8, 20});
    variable<float, 0> a = mean(square(exact(x))), b = mean(square(model(x)));
    variable<float, 2> local(exact.weight.value().clone());
    variable<float, 0> own = mean(square(matmul(x, local.transpose()) + exact.bias.value()));
    own.backward();
    whole.backward(a, 8);
    halves.backward(b, 8);
    const tensor magnitudes = world.all_reduce(tensor(abs(local.grad()) / 3.f).flatten()).get();
    const tensor g = exact.weight.grad().flatten(), h = model.weight.grad().flatten();
    bool differs = false;
    for (index_t i = 0; i < 600; ++i) {
      require(std::abs(g(i) - h(i)) <= magnitudes(i) / 128 + 1e-7f, "error of bfloat16");
      differs = differs || g(i) != h(i);
    }
    require(differs, "something was rounded");
  }));
}

TEST_CASE("distributed: only tasks that a rank has used are summed", "[parallel][distributed]") {
  CHECK_NOTHROW(run_ranks(2, {}, [&](thread_communicator world) {
    generator gen(1);
    nn::linear<double> body(4, 6, gen);
    heads_on model{{}, body, {5, [&](index_t) { return nn::linear<double>(6, 2, gen); }, {.copies = 2}}};
    nn::distributed ranks(model, world);
    const auto step = [&](index_t task) {
      const auto head = model.heads.fetch(task);
      const tensor<double, 2> x = full<double>({3, 4}, world.rank() + 1.);
      const variable<double, 2> on_cpu = model.body(x);
      const variable<double, 2, numa<0>> h = on_cpu.to<numa<0>>();
      variable<double, 0, numa<0>> l = mean(square(head(h)));
      ranks.backward(l.to<cpu>(), 3);
    };
    const auto bytes = [&](auto f) {
      const index_t before = ranks.report().bytes;
      f();
      return ranks.report().bytes - before;
    };
    const index_t one = bytes([&] { step(2); });                          // the same task on both ranks
    const index_t two = bytes([&] { step(world.rank() == 0 ? 2 : 4); });  // and two of them
    require(two - one == (16 + 8 + 2) * 8, "weight, bias in whole lines, 2 counts: " + std::to_string(two - one));
    for (index_t t = 0; t < 5; ++t)
      require(model.heads[t].weight.has_grad() == (t == 2 || t == 4), "gradient of task " + std::to_string(t));
    const tensor g = model.heads[4].weight.grad().flatten();
    const tensor all = world.all_gather(g.clone()).get();
    for (index_t i = 0; i < 12; ++i) require(all(i) == all(12 + i) && all(i) != 0, "the same on both ranks");
  }));
}
