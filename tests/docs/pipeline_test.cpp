// tests/docs/pipeline_test.cpp: the snippets of docs/pipeline.md, as tests.
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

#include <iostream>

using namespace sinter;

// [docs:member]
struct staged_model : nn::module<staged_model> {
  using device_type = numa<0>;    // where it takes its input
  using output_device = numa<1>;  // where its output is; said by every class with members on several devices
  nn::pipeline<nn::sequential<nn::linear<float, numa<0>>, nn::relu>, nn::linear<float, numa<1>>> stages;

  template <class X>
  auto forward(const X& x) const {
    return stages(x);
  }
  SINTER_MEMBERS(stages);
};
// [docs:end]

TEST_CASE("docs: pipeline.md") {
  generator gen(1);
  const tensor images = randn<float>(gen, {32, 3, 8, 8});
  const tensor labels = randint(gen, 0, 10, {32});

  // [docs:step]
  set_num_threads<numa<0>>(1);
  set_num_threads<numa<1>>(1);
  const nn::sequential features{nn::conv2d(3, 8, 3, gen, {.padding = 1}), nn::relu(), nn::adaptive_avg_pool2d(1),
                                nn::flatten()};
  const nn::pipeline pipe{features.to<numa<0>>(), nn::linear(8, 10, gen).to<numa<1>>()};
  optim::sgd optimizer(pipe, {.lr = 0.1});  // of both stages
  const auto loss = [](const auto& scores, const auto& l) { return cross_entropy(scores, l); };

  optimizer.zero_grad();
  const nn::pipeline_report r = pipe.step(images.to<numa<0>>(), labels, loss, {.microbatches = 8});
  optimizer.step();
  std::cout << r.loss << '\n' << r;                         // the loss of all 32, and the times of the stages
  tensor scores = eval(infer(pipe)(images.to<numa<0>>()));  // on numa<1>; one stage after the other
  // [docs:end]
  CHECK(r.loss > 0);
  CHECK(scores.extent(0) == 32);

  // [docs:schedule]
  pipe.step(images.to<numa<0>>(), labels, loss, {.microbatches = 4, .schedule = nn::schedule::gpipe});
  const auto plan = nn::schedule::one_f_one_b(4, 16);
  index_t held = plan.in_flight(0);                 // 4 microbatches, of gpipe 16
  double bubble = plan.simulated(1.0, 2.0).bubble;  // 3 / 19 where backward takes twice as long
  using enum nn::direction;
  const nn::schedule own({{{forward, 0}, {forward, 1}, {backward, 0}, {backward, 1}},    // stage 0
                          {{forward, 0}, {backward, 0}, {forward, 1}, {backward, 1}}});  // stage 1
  pipe.step(images.to<numa<0>>(), labels, loss, {.microbatches = 2, .schedule = [&](int, index_t) { return own; }});
  // [docs:end]
  CHECK(held == 4);
  CHECK(std::abs(bubble - 3. / 19) < 1e-12);
}

TEST_CASE("docs: pipeline.md, a member") {
  generator gen(1);
  const tensor rows = randn<float, numa<0>>(gen, {12, 6});
  const tensor labels = randint(gen, 0, 3, {12});
  const auto loss = [](const auto& scores, const auto& l) { return cross_entropy(scores, l); };
  // [docs:use]
  const nn::linear<float, numa<0>> first(6, 8, gen);
  const nn::linear<float, numa<1>> last(8, 3, gen);
  const staged_model model{{}, nn::pipeline{nn::sequential{first, nn::relu()}, last}};
  optim::sgd optimizer(model, {.lr = 0.1});
  model.stages.step(rows, labels, loss, {.microbatches = 4});
  optimizer.step();
  tensor scores = eval(infer(model.stages)(rows));  // the struct itself is no template, so it has no infer()
  // [docs:end]
  CHECK(last.weight.has_grad());
  CHECK(max(abs(scores - eval(model(rows)).value())).item() < 1e-5f);
  CHECK(model.named_parameters()[0].name == "stages.0.0.weight");
}
