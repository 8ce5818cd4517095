// tests/docs/modules_test.cpp: the code of docs/modules.md.
#include "../catch.hpp"
#include "../same_bits.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;

// [docs:module]
template <device D = cpu, class Kind = nn::tracked>
struct residual : nn::module<residual<D, Kind>> {
  nn::linear<float, D, Kind> fc;
  nn::parameter<float, 1, D, Kind> scale;

  template <class X>
  auto forward(const X& x) const {
    return x + scale * tanh(fc(x));
  }
  SINTER_MEMBERS(fc, scale);  // the one line: parameters, buffers, submodules, nn::mode, settings
};
// [docs:end]

// [docs:buffer]
template <device D = cpu, class Kind = nn::tracked>
struct centre : nn::module<centre<D, Kind>> {
  nn::buffer<float, 1, D> running;  // moved and saved, not trained
  nn::mode state;

  auto forward(const tensor<float, 2, D>& x) const {
    if (state.training) running.value() += 0.1f * (mean(x, 0) - running.value());
    return x - running.value();
  }
  SINTER_MEMBERS(running, state);
};
// [docs:end]

// [docs:list]
template <device D = cpu, class Kind = nn::tracked>
struct deep : nn::module<deep<D, Kind>> {
  nn::module_list<residual<D, Kind>> blocks;
  nn::linear<float, D, Kind> head;

  template <class X>
  auto forward(const X& x) const {
    variable h = blocks[0](x);
    for (index_t i = 1; i < blocks.size(); ++i) h = blocks[i](h);
    return head(h);
  }
  SINTER_MEMBERS(blocks, head);
};
// [docs:end]

// [docs:any]
template <device D = cpu, class Kind = nn::tracked>
using block = nn::any_module<float, 2, D, Kind, nn::devices<cpu, numa<0>>>;  // float, rank 2; may move to numa<0>

template <device D = cpu, class Kind = nn::tracked>
struct tower : nn::module<tower<D, Kind>> {
  nn::module_list<block<D, Kind>> blocks;

  auto forward(const tensor<float, 2, D>& x) const {
    nn::parameter<float, 2, D, Kind> h = blocks[0](x);
    for (index_t i = 1; i < blocks.size(); ++i) h = blocks[i](h);
    return h;
  }
  SINTER_MEMBERS(blocks);
};
// [docs:end]

TEST_CASE("modules: a module of one's own") {
  generator gen(1);
  // [docs:use]
  residual<> block{{}, nn::linear(8, 8, gen), ones<float>({8})};  // {} for the base
  nn::sequential model{nn::linear(4, 8, gen), block, nn::relu()};
  tensor y = infer(model)(randn<float>(gen, {5, 4}));
  // [docs:end]
  CHECK(y.shape() == extents<2>{{5, 8}});
  CHECK(model.named_parameters()[4].name == "1.scale");
}

TEST_CASE("modules: buffers") {
  const centre<> layer{{}, zeros<float>({2}), {}};
  eval(layer(ones<float>({3, 2})));
  CHECK(layer.running.value()(1) == 0.1f);
  CHECK(layer.to<numa<0>>().named_buffers()[0].device == "numa:0");
}

TEST_CASE("modules: a list of modules") {
  generator gen(2);
  // [docs:use_list]
  const auto make = [&] { return residual<>{{}, nn::linear(8, 8, gen), ones<float>({8})}; };
  deep<> model{{}, nn::module_list(12, make), nn::linear(8, 2, gen)};
  // [docs:end]
  CHECK(model.named_parameters()[3].name == "blocks.1.fc.weight");
  CHECK(eval(model(zeros<float>({3, 8}))).shape() == extents<2>{{3, 2}});
}

TEST_CASE("modules: the state of a model") {
  generator gen(3);
  nn::sequential model{nn::linear(4, 8, gen), nn::relu(), nn::linear(8, 2, gen)};
  std::string text;
  // [docs:state]
  nn::state_dict saved = nn::state(model);  // a copy on the host: "0.weight", "0.bias", "2.weight", "2.bias"
  saved[1].name = "0.offset";
  try {
    nn::load_state(model, saved);
  } catch (const value_error& e) {  // the model is as before
    text = e.what();
  }
  nn::load_state(model, saved, {.strict = false, .convert = true});
  // [docs:end]
  CHECK(text ==
        "load_state: the state does not fit the model; nothing was loaded:\n"
        "  '0.bias' is missing in the state\n"
        "  '0.offset' is not in the model");
}

TEST_CASE("modules: hidden types") {
  generator gen(4);
  // [docs:use_any]
  tower<> model;
  model.blocks.push_back(nn::linear(4, 8, gen));
  for (int i = 0; i < 3; ++i) model.blocks.push_back(residual<>{{}, nn::linear(8, 8, gen), ones<float>({8})});
  model.blocks.push_back(nn::sequential{nn::relu(), nn::linear(8, 2, gen)});
  // [docs:end]
  CHECK(eval(infer(model.to<numa<0>>())(zeros<float, numa<0>>({5, 4}))).shape() == extents<2>{{5, 2}});
  CHECK(model.named_parameters()[2].name == "blocks.1.fc.weight");
}

TEST_CASE("modules: a summary") {
  generator gen(5);
  const nn::sequential model{nn::linear(4, 8, gen), nn::relu(), nn::linear(8, 2, gen)};
  // [docs:summary]
  nn::summary_table table = nn::summary(model, {16, 4});
  std::string text = table.text();
  // module   type        output   parameters  multiply-adds  bytes  device
  // (model)  sequential  (16, 2)           0              0      0  cpu
  // 0        linear      (16, 8)          40            512    160  cpu
  // 1        relu        (16, 8)           0              0      0
  // 2        linear      (16, 2)          18            256     72  cpu
  // total                                 58            768    232
  // [docs:end]
  CHECK(text ==
        "module   type        output   parameters  multiply-adds  bytes  device\n"
        "(model)  sequential  (16, 2)           0              0      0  cpu\n"
        "0        linear      (16, 8)          40            512    160  cpu\n"
        "1        relu        (16, 8)           0              0      0\n"
        "2        linear      (16, 2)          18            256     72  cpu\n"
        "total                                 58            768    232\n");
}

TEST_CASE("modules: tables of rows") {
  generator gen(1);
  // [docs:embedding]
  nn::embedding words(1000, 16, gen, {.padding_idx = 0});  // weight (1000, 16); row 0 is zeros and stays so
  nn::linear<float, cpu, nn::tracked, false> head(16, 1000, gen);
  head.weight = words.weight;  // tied: one variable in two places
  const tensor<int, 2> ids{{4, 7, 0}, {9, 4, 4}};
  variable scores = head(words(ids));  // (2, 3) => (2, 3, 16) => (2, 3, 1000)

  nn::embedding_bag texts(1000, 16, gen, {.mode = bag_mode::sum});
  const tensor<int, 1> all{4, 7, 9, 4, 4}, begins{0, 2};  // the bags {4, 7} and {9, 4, 4}
  variable sums = texts(all, begins);                     // (2, 16)

  auto vectors = nn::embedding<>::from_pretrained(randn<float>(gen, {1000, 16}));  // frozen, unless `false` follows
  // [docs:end]
  CHECK(scores.shape() == extents<3>{{2, 3, 1000}});
  CHECK(sums.shape() == extents<2>{{2, 16}});
  CHECK(vectors.frozen);
  CHECK(eval(max(abs(scores[0][2]))).item() == 0);
}

TEST_CASE("modules: tables of which a step looks up few rows") {
  generator gen(1);
  const tensor<int, 1> ids{4, 7, 0, 9, 4, 4};
  // [docs:row_sparse]
  const nn::embedding words(100'000, 16, gen, {.sparse = true});
  optim::sgd optimizer(words, {.lr = 0.1});
  sum(square(words(ids))).backward();                  // ids of 4, 7, 0, 9, 4 and 4
  const auto [rows, values] = row_grad(words.weight);  // {0, 4, 7, 9} and (4, 16)
  optimizer.step();                                    // writes to four rows
  // [docs:end]
  CHECK(same_bits(rows, tensor<std::int64_t, 1>{0, 4, 7, 9}));
  CHECK(values.shape() == extents<2>{{4, 16}});
}
