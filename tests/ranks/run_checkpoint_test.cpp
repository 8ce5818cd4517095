// tests/ranks/run_checkpoint_test.cpp: runs that were stopped go on as if they had not been, and files that are
// damaged, foreign or of other objects change nothing.
#include "../catch.hpp"
#include "../io/folder.hpp"
#include "training_run.hpp"

#include <sys/resource.h>

#include <csignal>

using namespace sinter;
using Catch::Contains;
using names = std::vector<std::string>;

namespace {

/// `whole` trains 12 steps; `first` trains up to step `stop` and saves; another one, made of another seed, goes on.
template <class Optimizer>
void check_resume(const typename Optimizer::options_type& options) {
  const folder dir;
  const run_checkpoint file(dir.file("run.ckpt"));
  training_run<Optimizer> whole(3, options);
  whole.train(12);
  for (const index_t stop : {1, 3, 5, 10, 11}) {  // 5 and 10 end an epoch
    training_run<Optimizer> first(3, options), second(77, options);
    first.train(stop, [&](const auto& run) {
      if (run.step == stop) run.save(file);
    });
    CHECK((bits_of(first.model) != bits_of(second.model)));
    second.load(file);
    CAPTURE(stop);
    CHECK(second.step == stop);
    CHECK(second.loader.position() == first.loader.position());
    CHECK((bits_of(first.model) == bits_of(second.model)));
    second.train(12);
    CHECK((bits_of(second.model) == bits_of(whole.model)));
    CHECK(second.optimizer.lr() == whole.optimizer.lr());
    CHECK(second.scaler.get_scale() == whole.scaler.get_scale());
    CHECK(second.gen.offset() == whole.gen.offset());
  }
}

/// A saved run and what it is compared with.
struct saved_run {
  folder dir;
  run_checkpoint file{dir.file("run.ckpt")};
  training_run<optim::adam> run{3, {.lr = 0.01}};
  saved_run() {
    run.train(3);
    run.save(file);
  }
  /// The message of a load into other objects, which it leaves as they were.
  template <class Error>
  std::string refused() const {
    training_run<optim::adam> other(8, {.lr = 0.02});
    other.train(2);
    const std::string before = bits_of(other.model);
    const std::string text = message_of<Error>([&] { other.load(file); }, "loaded");
    CHECK((bits_of(other.model) == before));
    CHECK(other.optimizer.lr() == 0.02);
    CHECK(other.scheduler.base_lr() == 0.02);
    CHECK(other.scaler.get_scale() == 65536);
    CHECK(other.loader.position() == loader_position{0, 10});
    CHECK(other.step == 2);
    other.train(4);
    training_run<optim::adam> undisturbed(8, {.lr = 0.02});
    undisturbed.train(2);
    undisturbed.train(4);
    CHECK((bits_of(other.model) == bits_of(undisturbed.model)));
    return text;
  }
};

}  // namespace

TEST_CASE("a resumed run is the uninterrupted one, bit for bit", "[parallel]") {
  check_resume<optim::adam>({.lr = 0.05, .weight_decay = 0.01});
  check_resume<optim::sgd>({.lr = 0.05, .momentum = 0.9, .dampening = 0.2});
  check_resume<optim::rmsprop>({.lr = 0.01, .momentum = 0.5, .centered = true});
}

TEST_CASE("a loop that is left after the save goes on where it was left", "[parallel]") {
  const folder dir;
  const run_checkpoint file(dir.file("run.ckpt"));
  training_run<optim::adam> whole(3, {}), first(3, {}), second(4, {});
  whole.train(9);
  first.train(7);
  first.save(file);  // the loop is over, by a return
  second.load(file);
  second.train(9);
  CHECK((bits_of(second.model) == bits_of(whole.model)));
}

TEST_CASE("another number of ranks goes on with the same global batches", "[parallel]") {
  const folder dir;
  const run_checkpoint file(dir.file("run.ckpt"));
  generator gen(1);
  const auto loader_of = [](index_t rank, index_t ranks) {
    return data_loader(points_of_classes(), {.batch_size = 8 / ranks, .shuffle = true, .sampler{rank, ranks}});
  };
  auto two = loader_of(1, 2), four = loader_of(3, 4);
  for (const auto& batch : two) {
    CHECK(batch.size() == 4);
    file.save(gen, two);
    break;
  }
  generator other;
  file.load(other, four);
  CHECK(other.seed() == 1);
  CHECK(four.position() == loader_position{0, 8});
  for (const auto& batch : four) {
    CHECK(batch.size() == 2);
    CHECK(four.position().samples == 16);
    break;
  }
}

TEST_CASE("a checkpoint loads on another device", "[parallel]") {
  const folder dir;
  const run_checkpoint file(dir.file("x"));
  generator gen(2);
  nn::sequential model{nn::linear<double>(4, 6, gen), nn::dropout(0.3, gen)};
  optim::adam here(model, {.lr = 0.1});
  const tensor x = ones<double>({2, 4});
  sum(model(x)).backward();
  here.step();
  file.save(model, here);
  auto there = nn::sequential{nn::linear<double>(4, 6, gen), nn::dropout(0.3, gen)}.to<numa<1>>();
  optim::adam steps(there, {.lr = 0.5});
  file.load(there, steps);
  CHECK((bits_of(there) == bits_of(model)));
  here.zero_grad();
  sum(model(x)).backward();
  sum(there(x.to<numa<1>>())).backward();
  here.step();
  steps.step();
  CHECK((bits_of(there) == bits_of(model)));
}

TEST_CASE("a parameter that had no gradient yet begins anew", "[parallel]") {
  const folder dir;
  const run_checkpoint file(dir.file("x"));
  const auto trained = [](const variable<float, 1>& w, optim::adam& o, int steps) {
    for (int i = 0; i < steps; ++i) {
      o.zero_grad();
      sum(w * w).backward();
      o.step();
    }
  };
  variable<float, 1> used(ones<float>({3})), idle(ones<float>({5}));
  const std::vector<variable<float, 1>> both{used, idle};
  optim::adam saved(both);
  trained(used, saved, 2);
  file.save(saved);
  CHECK(read_safetensors(file.path()).names().size() == 4);  // m and v of one, powers of both
  variable<float, 1> a(used.value().clone()), b(ones<float>({5}));
  const std::vector<variable<float, 1>> copies{a, b};
  optim::adam loaded(copies);
  trained(b, loaded, 3);
  copy(idle.value(), b.value());
  file.load(loaded);
  trained(used, saved, 2);
  trained(idle, saved, 2);
  trained(a, loaded, 2);
  trained(b, loaded, 2);
  CHECK(all(a.value() == used.value()).item());
  CHECK(all(b.value() == idle.value()).item());
}

TEST_CASE("any subset in any order comes back, numbers and two of a kind too", "[parallel]") {
  const folder dir;
  const run_checkpoint file(dir.file("x"));
  CHECK_FALSE(file.exists());
  generator a(3, 5), b(18446744073709551615u, 7);
  const double best = 0.1;
  const std::int32_t count = -4;
  const bool done = true;
  file.save(b, best, a, count, done);
  CHECK(file.exists());
  generator c, d;
  double best2 = 0;
  std::int32_t count2 = 0;
  bool done2 = false;
  file.load(c, best2, d, count2, done2);
  CHECK((c.seed() == b.seed() && c.offset() == 7 && d.seed() == 3 && d.offset() == 5));
  CHECK((best2 == best && count2 == count && done2));
  CHECK_THROWS_WITH(file.load(c, best2, d, done2, count2), Contains("object 4 (number)") && Contains("of int32"));
  CHECK((best2 == best && count2 == count && done2));
  file.save(best);
  CHECK(dir.names() == names{"x"});
  const safetensors raw = read_safetensors(file.path());
  CHECK(raw.names() == names{"0.number.value"});
  CHECK(raw.get<double, 0>("0.number.value").item() == best);
}

TEST_CASE("objects that do not fit are named, and nothing is loaded", "[parallel]") {
  const saved_run saved;
  const run_checkpoint& file = saved.file;
  training_run<optim::adam> run(8, {.lr = 0.02});
  const std::string before = bits_of(run.model);
  generator gen(1);
  nn::sequential small{nn::linear<double>(4, 6, gen)};
  optim::sgd other_rule(small);
  const auto message = [&](const auto& f) { return message_of<value_error>(f, "loaded"); };

  CHECK_THAT(message([&] { file.load(run.optimizer, run.model); }),
             Contains("run.ckpt: holds (module, optimizer, lr_scheduler, grad_scaler, generator, data_loader, number), "
                      "but load() was given (optimizer, module); pass the objects that save() was given"));
  file.save(run.model, saved.run.optimizer);
  CHECK_THAT(message([&] { file.load(small, run.optimizer); }),
             Contains("run.ckpt: object 1 (module): the state does not fit the model; nothing was loaded:") &&
                 Contains("'0.0.weight' is not in the model"));
  CHECK_THAT(
      message([&] { file.load(run.model, other_rule); }),
      Contains("object 2 (optimizer): keeps 'm v powers' for each parameter, and the optimizer 'momentum begun'"));
  optim::adam of_small(small, {});
  CHECK_THAT(message([&] { file.load(run.model, of_small); }),
             Contains("object 2 (optimizer): has 6 parameters, and the optimizer 2"));
  file.save(small, of_small);
  nn::sequential wide{nn::linear<double>(4, 7, gen)};
  optim::adam of_wide(wide, {});
  CHECK_THAT(message([&] { file.load(small, of_wide); }),
             Contains("parameter 0 is '0.weight (6, 4)' in the file and '0.weight (7, 4)' in the optimizer"));

  nn::sequential with{nn::linear<double>(4, 6, gen), nn::dropout(0.1, gen)};
  file.save(small);
  CHECK_THAT(message([&] { file.load(with); }), Contains("object 1 (module): has 0 generators, but the model has 1"));
  file.save(with);
  nn::sequential moved{nn::linear<double>(4, 6, gen), nn::tanh(), nn::dropout(0.1, gen)};
  CHECK_THAT(message([&] { file.load(moved); }), Contains("generator 1 is '1.source' in the file and '2.source'"));

  file.save(saved.run.loader);
  data_loader shorter(points_of_classes().slice(0, 20), saved.run.loader.options());
  CHECK_THAT(message([&] { file.load(shorter); }), Contains("has a dataset of size 22, and the loader 20"));
  data_loader seed(points_of_classes(), {.shuffle = true, .seed = 1});
  CHECK_THAT(message([&] { file.load(seed); }), Contains("has the seed 9, and the loader 1"));
  data_loader in_order(points_of_classes(), {.seed = 9});
  CHECK_THAT(message([&] { file.load(in_order); }), Contains("has shuffle 1, and the loader 0"));
  CHECK((bits_of(run.model) == before));
  CHECK(run.optimizer.lr() == 0.02);
}

TEST_CASE("groups of parameters come back with their rates and states; other groups are refused", "[parallel]") {
  struct grouped {
    generator gen;
    nn::sequential<nn::linear<double>, nn::linear<double>> model{nn::linear<double>(4, 6, gen),
                                                                 nn::linear<double>(6, 3, gen)};
    optim::sgd optimizer{model, {.lr = 0.02, .momentum = 0.9}};
    grouped(std::uint64_t seed, index_t of_group) : gen(seed) {
      const auto change = [](auto& o) { o.lr = 0.05; };
      if (of_group == 0) optimizer.add_param_group(model.get<0>(), change);
      if (of_group == 1) optimizer.add_param_group(model.get<1>(), change);
    }
    void train(optim::lr_scheduler<optim::cosine_lr>& scheduler, int from, int to) {
      for (int i = from; i < to; ++i) {
        optimizer.zero_grad();
        variable loss = sum(square(model(full<double>({2, 4}, 0.1 * i))));
        loss.backward();
        optimizer.step();
        scheduler.step();
      }
    }
  };
  const optim::cosine_lr rule{10, 0.01};
  const folder dir;
  const run_checkpoint file(dir.file("x"));
  grouped whole(1, 1), first(1, 1), second(2, 1), other_group(2, 0), one_group(2, -1);
  optim::lr_scheduler of_whole(whole.optimizer, rule), of_first(first.optimizer, rule);
  second.optimizer.set_lr(0.5);
  optim::lr_scheduler of_second(second.optimizer, rule), of_one(one_group.optimizer, rule);
  whole.train(of_whole, 0, 6);
  first.train(of_first, 0, 3);
  file.save(first.model, first.optimizer, of_first);
  file.load(second.model, second.optimizer, of_second);
  CHECK(of_second.base_lr(1) == 0.05);
  CHECK(second.optimizer.lr(1) == first.optimizer.lr(1));
  second.train(of_second, 3, 6);
  CHECK(second.optimizer.lr(1) == whole.optimizer.lr(1));
  CHECK((bits_of(second.model) == bits_of(whole.model)));

  file.save(first.optimizer);
  CHECK_THROWS_WITH(file.load(other_group.optimizer),
                    Contains("parameter 0 is in group 0 in the file and 1 in the optimizer"));
  CHECK_THROWS_WITH(file.load(one_group.optimizer), Contains("has 2 groups of parameters, and the object 1"));
  file.save(of_first);
  CHECK_THROWS_WITH(file.load(of_one), Contains("has 2 groups of parameters, and the object 1"));
  file.save(one_group.optimizer);
  CHECK_THROWS_WITH(file.load(first.optimizer), Contains("has 1 groups of parameters, and the object 2"));
}

TEST_CASE("a scaler is saved between its updates", "[parallel]") {
  const folder dir;
  const run_checkpoint file(dir.file("x"));
  training_run<optim::sgd> run(1, {});
  run.scaler.step(run.optimizer);
  CHECK_THROWS_WITH(run.save(file), Contains("since the last update()"));
  CHECK_FALSE(file.exists());
  run.scaler.update();
  run.save(file);
}

TEST_CASE("a damaged file is refused wherever it is damaged", "[parallel]") {
  const saved_run saved;
  const std::string good = detail::read_file(saved.file.path());
  generator gen(5);
  const tensor places = randint(gen, 0, static_cast<index_t>(good.size()), {60});
  const auto write = [&](const std::string& bytes) { detail::write_file(saved.file.path(), bytes); };
  index_t of_data = 0;
  for (index_t i = 0; i < 60; ++i) {
    std::string bad = good;
    const auto place = static_cast<std::size_t>(places(i));
    bad[place] = static_cast<char>(bad[place] ^ (1 << i % 8));
    write(bad);
    training_run<optim::adam> other(8, {});
    const std::string before = bits_of(other.model);
    CAPTURE(place);
    const std::string text = message_of<io_error>([&] { other.load(saved.file); }, "loaded");
    CHECK_THAT(text, Contains("run.ckpt"));
    CHECK((bits_of(other.model) == before));
    of_data += text.find("is damaged; load an older checkpoint") != std::string::npos;
  }
  CHECK(of_data > 30);
  for (const std::size_t left : {std::size_t{0}, std::size_t{7}, std::size_t{100}, good.size() / 2, good.size() - 1}) {
    write(good.substr(0, left));
    CHECK_THAT(saved.refused<io_error>(), Contains("run.ckpt"));
  }
  write(good + "x");
  CHECK_THAT(saved.refused<io_error>(), Contains("run.ckpt"));
  std::string bad = good;
  bad[good.size() - 1] = static_cast<char>(bad[good.size() - 1] ^ 1);
  write(bad);
  CHECK_THAT(saved.refused<io_error>(), Contains("run.ckpt: '") && Contains("' is damaged; load an older checkpoint"));
}

TEST_CASE("foreign files and other versions are refused", "[parallel]") {
  const saved_run saved;
  const std::string path = saved.file.path();
  const auto refused = [&](const safetensors_metadata& metadata) {
    write_safetensors(path, nn::state(saved.run.model), metadata);
    return saved.refused<io_error>();
  };
  CHECK_THAT(refused({}), Contains("run.ckpt: is a safetensors file, but no run checkpoint"));
  CHECK_THAT(refused({{"format", "pt"}}), Contains("no run checkpoint"));
  CHECK_THAT(refused({{"format", "sinter run checkpoint"}, {"version", "2"}}),
             Contains("is a run checkpoint of version '2'; this Sinter reads version 1"));
  CHECK_THAT(refused({{"format", "sinter run checkpoint"}, {"version", "1"}}), Contains("its header is damaged"));
  detail::write_file(path, "PK\3\4 and so on");
  CHECK_THAT(saved.refused<io_error>(), Contains("run.ckpt: "));
  std::filesystem::remove(path);
  CHECK_THAT(saved.refused<io_error>(), Contains("run.ckpt: cannot open for reading: No such file"));
  generator gen;
  CHECK_THROWS_WITH(run_checkpoint(path + "/x/y").load(gen), Contains("run.ckpt/x/y"));
}

TEST_CASE("a folder is no checkpoint", "[parallel]") {
  const saved_run saved;
  const std::string folder = saved.dir.file("runs");
  std::filesystem::create_directory(folder);
  const run_checkpoint there(folder), behind(folder + "/");
  CHECK(saved.file.exists());
  CHECK_FALSE(there.exists());
  CHECK_FALSE(behind.exists());
  std::filesystem::create_symlink(saved.file.path(), saved.dir.file("link"));
  CHECK(run_checkpoint(saved.dir.file("link")).exists());
  generator gen;
  for (const run_checkpoint& file : {there, behind}) {
    CHECK(message_of<io_error>([&] { file.load(gen); }, "loaded") ==
          file.path() + ": is a directory, not a file; name a file in it");
    CHECK(message_of<io_error>([&] { file.save(gen); }, "saved") ==
          file.path() + ": is a directory, not a file; name a file in it");
  }
  CHECK(std::filesystem::is_empty(folder));
  CHECK(message_of<value_error>([] { run_checkpoint file(""); }, "made") ==
        "run_checkpoint: the path is empty; name a file");
}

TEST_CASE("a save that fails leaves the file of before", "[parallel]") {
  saved_run saved;
  const std::string good = detail::read_file(saved.file.path());
  saved.run.train(5);
  rlimit before, small;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{100}, static_cast<rlim_t>(good.size() - 1)}) {
    small = before;
    small.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const std::string text = message_of<io_error>([&] { saved.run.save(saved.file); }, "saved");
    ::setrlimit(RLIMIT_FSIZE, &before);
    CHECK_THAT(text, Contains("run.ckpt: writing failed: File too large"));
    CHECK(detail::read_file(saved.file.path()) == good);
    CHECK(saved.dir.names() == names{"run.ckpt"});
  }
  std::signal(SIGXFSZ, handler);
  saved.run.save(saved.file);
  CHECK(detail::read_file(saved.file.path()) != good);
  CHECK_THROWS_WITH(saved.run.save(run_checkpoint("/nonexistent/x")), Contains("/nonexistent/x: cannot make a new"));
  CHECK_THROWS_WITH(run_checkpoint(saved.file.path() + "/x").exists(), Contains("Not a directory"));
}

TEST_CASE("every bit counts in a checksum", "[parallel]") {
  for (const std::size_t n : {1u, 7u, 8u, 31u, 32u, 100u}) {
    std::string bytes(n, '\0');
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(i * 37);
    const std::uint64_t sum = detail::checksum_of(std::string_view(bytes));
    for (std::size_t bit = 0; bit < 8 * n; ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      REQUIRE(detail::checksum_of(std::string_view(bytes)) != sum);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    }
    CHECK(detail::checksum_of(std::string_view(bytes + '\0')) != sum);
  }
}
