// tests/docs/data_test.cpp: the snippets of docs/data.md, as tests.
#include <cmath>
#include <filesystem>
#include <fstream>

#include <sinter/data.hpp>
#include <sinter/io.hpp>
#include <sinter/metrics.hpp>
#include <sinter/sinter.hpp>
#include <sinter/train.hpp>

#include "../catch.hpp"

using namespace sinter;

TEST_CASE("data.md: metrics") {
  generator gen(1);
  const tensor points = randn(gen, {50, 2});
  const tensor labels = eval(cast<std::int64_t>(points.select(1, 0) > 0));
  data_loader loader(tensor_dataset(points, labels), {.batch_size = 16});
  const nn::sequential model{nn::linear(2, 2, gen)};
  double right = 0, f1 = 0, mean_loss = 0;
  // [docs:metrics]
  metrics::accuracy accuracy;
  metrics::confusion_matrix matrix(2);
  metrics::running_mean loss;
  for (auto& [x, y] : loader) {
    tensor scores = infer(model)(x);
    accuracy.add(scores, y);
    matrix.add(scores, y);
    loss.add(eval(cross_entropy(scores, y)).item(), y.size(0));
  }
  right = accuracy.value();
  f1 = matrix.f1(metrics::average::macro);
  mean_loss = loss.value();
  // [docs:end]
  CHECK(right == matrix.accuracy());
  CHECK(f1 <= 1);
  CHECK(mean_loss == Approx(eval(cross_entropy(infer(model)(points), labels)).item()));
}

TEST_CASE("data.md: tables") {
  const std::string path = std::filesystem::temp_directory_path() / "sinter_docs_trees.csv";
  std::ofstream(path) << "height,girth,species,price\n3.5,NA,oak,10\n2,0.5,\"fir, white\",\n";
  // [docs:table]
  table t = read_table(path, {.missing = {"NA"}});
  tensor x = t.numbers<float>({"height", "girth"}, {.fill = NAN});           // (rows, 2)
  tensor price = t.numbers<double>("price", {.fill = 0});                    // (rows,)
  auto [labels, species] = t.categories("species");                          // 0, 1, ... and what they mean
  std::vector<std::string> features = t.names_except({"species", "price"});  // "height", "girth"
  // [docs:end]
  std::filesystem::remove(path);
  CHECK(std::isnan(x(0, 1)));
  CHECK(price(1) == 0);
  CHECK(species[static_cast<std::size_t>(labels(1))] == "fir, white");
  CHECK(features.size() == 2);
}

#if SINTER_WITH_PNG
TEST_CASE("data.md: folders of pictures") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "sinter_docs_flowers";
  const std::string path = folder.string();
  for (const char* name : {"daisy", "rose"}) {
    std::filesystem::create_directories(folder / name);
    write_png(ones<std::uint8_t>({3, 20, 30}), (folder / name / "1.png").string());
  }
  std::vector<std::string> names;
  index_t seen = 0;
  // [docs:image_folder]
  image_folder flowers(path, {.size = {64, 64}});  // path/daisy/1.png, path/rose/1.png, ...
  names = flowers.classes();                       // "daisy", "rose"
  data_loader loader(flowers, {.batch_size = 32, .shuffle = true});
  for (auto& [x, y] : loader)  // x float (32, 3, 64, 64), from 0 to 1; y int64_t (32,)
    seen += x.size(0) * y.size(0) * x.size(3);
  // [docs:end]
  CHECK(seen == 2 * 2 * 64);
  std::filesystem::remove_all(folder);
  CHECK(names == std::vector<std::string>{"daisy", "rose"});
}
#endif

TEST_CASE("data.md: splits") {
  const tensor features = arange<float>(200).reshape({100, 2});
  const tensor labels = eval(cast<std::int64_t>(features.select(1, 0) > 80));
  index_t rows = 0;
  // [docs:split]
  generator gen(1);
  tensor_dataset all(features, labels);
  auto parts = random_split(gen, all, {0.8, 0.1, 0.1});                     // or {80, 10, 10}
  auto [train, test] = train_test_split(gen, all, {.test_size = 0.2});      // subset<...> of 80 and 20 samples
  data_loader loader(concat_dataset(train, parts[2]), {.batch_size = 16});  // 90 samples
  // [docs:end]
  for (auto& [x, y] : loader) rows += y.size(0);
  CHECK(rows == 90);
  CHECK(test.size() == 20);
  // [docs:normalizer]
  normalizer scale(2);  // of two features
  scale.fit(features);
  tensor x = scale(features);  // mean 0 and deviation 1
  tensor same = scale.inverse(x);
  nn::sequential model{scale, nn::linear(2, 2, gen)};  // is saved and moved with the model
  // [docs:end]
  CHECK(allclose(same, features));
  CHECK(model(features).shape() == extents<2>{{100, 2}});
}

TEST_CASE("data.md: padding") {
  index_t most = 0;
  // [docs:padded]
  std::vector<tensor<std::int64_t, 1>> sentences = {{5, 2, 7}, {3}, {4, 4}};
  sequence_dataset set(sentences, tensor<std::int64_t, 1>{1, 0, 1});
  data_loader loader(set, {.batch_size = 2});
  for (auto& [words, y] : loader) {  // words.values (2, 3), then (1, 2); words.lengths (2,), then (1,)
    tensor there = words.mask();     // false where it is padding
    most = std::max(most, words.values.size(1));
  }
  // [docs:end]
  CHECK(most == 3);
}

TEST_CASE("data.md: augmentation") {
  generator draw(1);
  const tensor images = rand(draw, {8, 3, 16, 16});
  const tensor labels = randint(draw, 0, 10, {8});
  data_loader loader(tensor_dataset(images, labels), {.batch_size = 4, .shuffle = true});
  index_t seen = 0;
  // [docs:augment]
  generator gen(7);
  for (auto& [x, y] : loader) {  // float (4, 3, 16, 16), from 0 to 1
    tensor moved = random_affine(gen, x, {.angle = 10, .translate = {0.1, 0.1}, .scale = {0.9, 1.1}});
    tensor coloured = color_jitter(gen, moved, {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1});
    auto [inputs, targets] = mixup(gen, random_erasing(gen, coloured), y, 10, {.alpha = 0.2});
    seen += inputs.size(0) * targets.size(1);  // cross_entropy(model(inputs), targets) takes probabilities (4, 10)
  }
  // [docs:end]
  CHECK(seen == 80);
}

TEST_CASE("data.md: training") {
  generator gen(1);
  const tensor points = randn(gen, {100, 2});
  const tensor labels = eval(cast<std::int64_t>(points.select(1, 0) > 0));
  const std::string path = std::filesystem::temp_directory_path() / "sinter_docs_fit.ckpt";
  std::filesystem::remove(path);
  double reached = 0;
  // [docs:fit]
  nn::sequential model{nn::linear(2, 16, gen), nn::relu(), nn::linear(16, 2, gen)};
  optim::adam optimizer(model, {.lr = 0.05});
  auto [train, test] = train_test_split(gen, tensor_dataset(points, labels), {.test_size = 0.2});
  data_loader loader(train, {.batch_size = 16, .shuffle = true}), held_out(test, {.batch_size = 100});
  auto loss = [](const auto& net, const auto& x, const auto& y) { return cross_entropy(net(x), y); };
  auto score = [&](const auto& net) {
    metrics::accuracy accuracy;
    for (auto& [x, y] : held_out) accuracy.add(net(x), y);
    return accuracy.value();
  };
  fit_history history =
      fit(model, optimizer, loader, loss, score, {.epochs = 50, .patience = 5, .maximize = true, .checkpoint = path});
  reached = history.best_score;  // of epoch history.best_epoch, whose weights the model has
  // [docs:end]
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".best");
  CHECK(reached > 0.8);
}

TEST_CASE("data.md: watching a run") {
  generator gen(1);
  const std::string path = std::filesystem::temp_directory_path() / "sinter_docs_runs";
  const tensor images = rand(gen, {4, 3, 8, 8});
  nn::sequential model{nn::flatten(), nn::linear(192, 2, gen)};
  optim::sgd optimizer(model, {.lr = 0.1});
  {
    const std::string folder = path;
    // [docs:watching]
    summary_writer writer(folder);  // such as "runs/first"
    writer.add_text("settings", "lr 0.1", 0);
    writer.add_image("first", images[0], 0);  // (3, 8, 8), from 0 to 1
    for (int step = 0; step < 20; ++step) {
      variable loss = mean(square(model(images)));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      writer.add_scalar("loss/train", loss.item(), step);
      if (step % 10 == 0) writer.add_histogram("weights", model.get<1>().weight, step);
    }
    // [docs:end]
  }
  CHECK(std::distance(std::filesystem::directory_iterator(path), {}) == 1);
  std::filesystem::remove_all(path);
}
