// tests/docs/library_test.cpp: the snippets of docs/library.md, as tests.
#include <Eigen/LU>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sinter/data.hpp>
#include <sinter/io.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

// [docs:module]
template <device D = cpu, class Kind = nn::tracked>
struct residual : nn::module<residual<D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <device To, class K>
  using rebind = residual<To, K>;  // for to() and infer()

  residual() = default;  // for to() and infer()
  residual(index_t width, generator& gen) : fc(width, width, gen), scale(ones<float, D>({width})) {}

  template <class X>
  auto forward(const X& x) const {
    return x + scale * tanh(fc(x));
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {  // the one list: parameters, submodules, nn::mode, settings
    f("fc", m.fc...);
    f("scale", m.scale...);
  }

  nn::linear<float, D, Kind> fc;
  nn::parameter<float, 1, D, Kind> scale;
};
// [docs:end]

// [docs:dataset]
struct squares {
  index_t size() const { return 10; }
  sample<tensor<float, 1>, float> get(index_t i) const {
    const auto x = static_cast<float>(i);
    return {tensor<float, 1>{x, 1}, x * x};
  }
};
// [docs:end]

TEST_CASE("library: tensors, views and Eigen") {
  {
    // [docs:create]
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    tensor a = from_data<float>(values, {2, 3});  // copies
    tensor<double, 1> list = {1, 2, 3};           // rank 1 to 4 from lists
    tensor b = full<float>({2, 3}, 0.5f);
    tensor c = zeros_like(a);
    tensor n = arange<int>(2, 10, 3);  // 2, 5, 8
    extents<2> shape = a.shape();      // extents compare, print and index: shape[1] == 3
    // [docs:end]
    CHECK(a(1, 0) == 4);
    CHECK(list.numel() == 3);
    CHECK(b(1, 2) == 0.5f);
    CHECK(c(1, 2) == 0);
    CHECK(n(-1) == 8);
    CHECK(n.numel() == 3);
    CHECK(shape[1] == 3);
  }
  {
    // [docs:views]
    tensor x = arange<float>(24).reshape({2, 3, -1});  // (2, 3, 4)
    tensor last = x.select(0, -1);                     // (3, 4)
    tensor odd = x.slice(2, 1, 4, 2);                  // (2, 3, 2): elements 1 and 3 of the last axis
    tensor p = x.permute({2, 0, 1});                   // (4, 2, 3)
    x[0].flip(1) = last;                               // a view on the left writes into x
    odd.in_place() = 0.f * odd;                        // so does a named view through in_place()
    odd = odd + 1.f;                                   // without it the handle gets a new tensor; x stays
    tensor own = p.clone();                            // dense, in memory of its own, in the same order
    // [docs:end]
    CHECK(x(0, 0, 0) == 15);
    CHECK(x(0, 0, 1) == 0);
    CHECK(odd(0, 0, 0) == 1);
    CHECK(p(0, 1, 2) == x(1, 2, 0));
    CHECK(!p.is_contiguous());
    CHECK(own.is_dense());
    CHECK(p.contiguous().is_contiguous());
    CHECK_THROWS_AS(x.slice(2, 0, 5), index_error);
    CHECK_THROWS_AS(x.slice(0, 0, 1).broadcast_to({2, 3, 4}) = x, shape_error);
  }
  {
    // [docs:format]
    tensor<float, 4> images = zeros<float>({8, 3, 32, 32});
    tensor x = images.to_memory_format(channels_last);  // a copy
    tensor y = relu(x * 2.f);                           // one pass; y is channels-last as well
    tensor rows = y.contiguous();                       // a copy, row-major
    // [docs:end]
    CHECK(x.is_contiguous(channels_last));
    CHECK(y.is_contiguous(channels_last));
    CHECK(rows.is_contiguous());
  }
  {
    // [docs:eigen]
    const tensor<float, 2> a = {{2, 0}, {1, 1}};
    tensor inverse = empty_like(a);
    as_eigen(inverse) = as_eigen(a).inverse();        // writes into the tensor; needs <Eigen/LU>
    tensor v = from_eigen(Eigen::Vector3d(1, 2, 3));  // a copy, rank 1
    // [docs:end]
    CHECK(inverse(1, 0) == -0.5f);
    CHECK(v(2) == 3);
    CHECK(memory().bytes_in_use > 0);
  }
}

TEST_CASE("library: what is not noticed") {
  // [docs:kept]
  tensor<float, 1> x = {1, 2};
  auto e = x * sum(x);
  tensor first = e;          // 3, 6
  x += 1.f;                  // x is 2, 3
  tensor second = e;         // 6, 9: the sum is still 3
  tensor anew = x * sum(x);  // 10, 15
  // [docs:end]
  CHECK(first(1) == 6);
  CHECK(second(0) == 6);
  CHECK(second(1) == 9);
  CHECK(anew(0) == 10);
  variable w = tensor<float, 1>{1, 2};
  variable y = sum(w * w);
  w.value()(0) = 5;  // not noticed: backward sees the new value
  y.backward();
  CHECK(w.grad()(0) == 10);
  variable z = sum(w * w);
  w.value() += 1.f;
  CHECK_THROWS_AS(z.backward(), autograd_error);
}

TEST_CASE("library: variables and random numbers") {
  {
    // [docs:variable]
    variable x = tensor<double, 1>{1, 2, 3};
    variable h = x * x;
    h.retain_grad();  // keep the gradient of a result
    tensor<double, 1> seed = {1, 0, 2};
    h.backward(seed, {.retain_graph = true});  // a seed, for what is not a scalar
    variable loss = sum(h.slice(0, 0, 2));     // views of variables are recorded
    loss.backward();                           // adds to x.grad()
    no_grad guard;                             // for the rest of this scope, on this thread
    variable y = sum(x);                       // not recorded: y.backward() is an autograd_error
    // [docs:end]
    CHECK(x.grad()(0) == 4);
    CHECK(x.grad()(1) == 4);
    CHECK(x.grad()(2) == 12);
    CHECK(h.grad()(0) == 2);
    CHECK(y.item() == 6);
    CHECK_THROWS_AS(y.backward(), autograd_error);
  }
  {
    // [docs:random]
    generator gen(42);
    tensor u = rand<float>(gen, {2, 3});
    tensor k = randint(gen, 0, 10, {5});          // int64
    tensor order = randperm(gen, 8);              // int64
    generator resumed(gen.seed(), gen.offset());  // all there is to save
    tensor a = normal<double>(gen, 1, 0.5, {4});
    tensor b = normal<double>(resumed, 1, 0.5, {4});  // the same numbers
    // [docs:end]
    CHECK(u.numel() == 6);
    CHECK(k(0) < 10);
    CHECK(eval(sum(order)).item() == 28);
    CHECK(a(3) == b(3));
  }
}

TEST_CASE("library: modules") {
  const auto x = full<float>({3, 4}, 0.5f);
  // [docs:use_module]
  generator gen(1);
  nn::sequential model{nn::linear<float, cpu, nn::tracked, false>(4, 8, gen),  // no bias
                       residual(8, gen), nn::dropout(0.5, gen), nn::linear(8, 2, gen)};
  auto same = model;           // the same weights: variables are handles
  auto own = model.to<cpu>();  // weights of its own
  model.get<1>().scale.value() *= 2.f;
  copy_state(model, own);      // values only, between equally built modules
  model.eval();                // dropout off; train() turns it on
  tensor y = infer(model)(x);  // plain tensors, the same memory, nothing recorded
  // [docs:end]
  CHECK(model.named_parameters()[3].name == "1.scale");
  CHECK(same.get<1>().scale(0) == 2);
  CHECK(own.get<1>().scale(0) == 2);
  model.get<1>().scale.value() *= 2.f;
  CHECK(same.get<1>().scale(0) == 4);
  CHECK(own.get<1>().scale(0) == 2);
  CHECK(y.shape() == extents<2>{{3, 2}});
  CHECK(same.get<2>().state.training);
}

TEST_CASE("library: optimizers") {
  // [docs:optim]
  std::vector<variable<float, 1>> weights = {tensor<float, 1>{3, -2}};
  variable<float, 0> bias = full<float>(1.f);
  optim::sgd optimizer(weights, {.lr = 0.1, .momentum = 0.5});
  optimizer.add(bias);  // of another rank
  optim::lr_scheduler scheduler(optimizer, optim::then_lr{5, optim::warm_up_lr{5}, optim::cosine_lr{.period = 45}});
  optim::gradient_norm norm;
  for (int epoch = 0; epoch < 50; ++epoch) {
    variable loss = sum(square(weights[0])) + square(bias);
    optimizer.zero_grad();
    loss.backward();
    norm = optim::clip_grad_norm(weights, 1.0);  // the norm before clipping, to be read when it is wanted
    optimizer.step();
    scheduler.step();
  }
  // [docs:end]
  CHECK(norm < 0.1);
  CHECK(std::fabs(bias.item()) < 0.1);
  CHECK(optimizer.lr() == Approx(0).margin(1e-9));
  CHECK(optimizer.size() == 2);
}

TEST_CASE("library: initial values") {
  generator gen(1);
  // [docs:init]
  nn::sequential model{nn::linear(8, 16, gen), nn::relu(), nn::linear(16, 4, gen)};
  nn::init::orthogonal_(model.get<2>().weight, gen);
  model.for_each_parameter([&](const std::string&, const auto& p) {
    if constexpr (rank_of<decltype(p)> == 1) nn::init::zeros_(p);  // all biases
  });
  // [docs:end]
  CHECK(model.get<0>().bias(3) == 0);
  CHECK(square(model.get<2>().weight.value()).sum().item() == Approx(4));
}

TEST_CASE("library: averages of weights") {
  generator gen(1);
  nn::sequential model{nn::linear(3, 4, gen), nn::batch_norm1d(4), nn::linear(4, 2, gen)};
  optim::sgd optimizer(model, {.lr = 0.1});
  const tensor x = randn(gen, {8, 3}), y = randn(gen, {8, 2});
  // [docs:averages]
  optim::averaged_model average(model, {.decay = 0.99, .use_buffers = true});
  for (int step = 0; step < 20; ++step) {
    variable loss = mse_loss(model(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    average.update_parameters(model);
  }
  tensor scores = infer(average)(x);   // a module like any other: saved, copied to devices
  copy_state(average.model(), model);  // the model goes on from its average
  // [docs:end]
  CHECK(average.n_averaged() == 20);
  CHECK(allclose(scores, infer(model)(x)));
}

TEST_CASE("library: groups of parameters") {
  generator gen(1);
  const nn::sequential model{nn::linear(3, 4, gen), nn::layer_norm(4), nn::linear(4, 2, gen)};
  // [docs:groups]
  optim::adamw optimizer(model, {.lr = 1e-3, .weight_decay = 0.1});
  const auto is_vector = [](const nn::parameter_info& p) { return p.shape.size() < 2; };  // biases, norms
  optimizer.add_param_group(optim::only(model, is_vector), [](auto& o) { o.weight_decay = 0; });
  optimizer.add_param_group(model.get<2>(), [](auto& o) { o.lr = 1e-2; });  // the last layer
  // [docs:end]
  CHECK(optimizer.groups() == 3);
  CHECK(optimizer.lr(1) == 1e-3);
  CHECK(optimizer.options(2).weight_decay == 0.1);
}

TEST_CASE("library: data and files") {
  const std::string path = (std::filesystem::temp_directory_path() / "sinter_library_test.csv").string();
  std::ofstream(path) << "x,y\n1,2\n3,4\n5,6\n";
  index_t batches = 0;
  float total = 0;
  {
    // [docs:loader]
    data_loader loader(squares(), {.batch_size = 4, .shuffle = true});
    for (auto& [x, y] : loader) {  // x (4, 2), y (4,); the last batch has 2
      batches += 1;
      total += eval(sum(y)).item();
    }
    tensor table = read_csv<float>(path, {.skip_lines = 1});  // (3, 2)
    tensor_dataset rows(table.slice(1, 0, 1), table.select(1, 1));
    // [docs:end]
    CHECK(loader.size() == 3);
    CHECK(loader.epoch() == 1);
    CHECK(rows.size() == 3);
    CHECK(rows.targets()(2) == 6);
  }
  CHECK(batches == 3);
  CHECK(total == 285);
  std::filesystem::remove(path);
}

TEST_CASE("library: shares of ranks") {
  const index_t rank = 1, ranks = 2;
  index_t seen = 0;
  loader_position stopped;
  {
    // [docs:sampler]
    distributed_sampler share(rank, ranks);  // or distributed_sampler(communicator)
    data_loader loader(squares(), {.batch_size = 2, .shuffle = true, .sampler = share});
    for (auto& [x, y] : loader) {
      seen += x.extent(0);
      stopped = loader.position();
      if (stopped.samples >= 4) break;
    }
    // [docs:end]
  }
  CHECK(seen == 2);
  CHECK(stopped == loader_position{0, 4});
  {
    // [docs:resume_epoch]
    data_loader alone(squares(), {.batch_size = 4, .shuffle = true});
    alone.set_position(stopped);
    for (auto& [x, y] : alone) seen += x.extent(0);  // the samples that are left of the epoch
    // [docs:end]
  }
  CHECK(seen == 2 + 6);
}

TEST_CASE("library: random changes of images") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "sinter_library_test_cifar10";
  const std::string path = folder.string();
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "data_batch_1.bin", std::ios::binary) << std::string(6 * 3073, '\1');
  index_t images_seen = 0;
  {
    // [docs:augment]
    auto [images, labels] = read_cifar10(path, {.prefix = "data_batch"});
    data_loader loader(tensor_dataset(images, labels), {.batch_size = 4, .shuffle = true});
    generator gen(7);
    for (auto& [x, y] : loader) {
      tensor cropped = random_crop(gen, x, {32, 32}, {.padding = 4});
      tensor input = eval(cast<float>(random_horizontal_flip(gen, cropped)) / 255.f);
      images_seen += input.extent(0);
    }
    // [docs:end]
    CHECK(labels(5) == 1);
  }
  CHECK(images_seen == 6);
  std::filesystem::remove_all(folder);
}
