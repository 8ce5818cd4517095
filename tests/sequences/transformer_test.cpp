// tests/sequences/transformer_test.cpp: layers of transformers, stacks of them, masks of padding, and positions.
// tests/judge has PyTorch's cases of the layers, tests/kernels the op rotary.
#include <sinter/sequences.hpp>
#include "../same_bits.hpp"
#include "distance.hpp"

using namespace sinter;

TEST_CASE("layers of transformers move, show their tensors, and drop in training only", "[sequences]") {
  generator gen(1);
  const tensor x = randn<float>(gen, {2, 5, 8}), memory = randn<float>(gen, {2, 3, 8});
  nn::transformer model(8, 2, 2, 1, gen, {.feedforward_features = 12, .batch_first = true});
  CHECK(distance(model(x, memory).detach(), model(x, memory).detach()) > 1e-4);
  model.eval();
  const tensor expected = model(x, memory).detach();
  CHECK(distance(model(x, memory).detach(), expected) == 0);
  CHECK(distance(infer(model)(x, memory), expected) < 1e-6);
  auto moved = model.to<numa<0>>();
  moved.eval();
  CHECK(distance(moved(x.to<numa<0>>(), memory.to<numa<0>>()).detach().to<cpu>(), expected) == 0);
  std::vector<std::string> names;
  for (const auto& p : model.named_parameters()) names.push_back(p.name);
  CHECK(names.front() == "encoder.layers.0.self_attn.in_proj_weight");
  CHECK(names.back() == "decoder.norm.bias");
  CHECK(std::count(names.begin(), names.end(), "encoder.layers.1.norm2.weight") == 1);
  CHECK(std::count(names.begin(), names.end(), "decoder.layers.0.multihead_attn.out_proj.bias") == 1);
  CHECK(names.size() == 2 * 12 + 18 + 4);
  const nn::transformer_encoder bare(8, 2, 2, gen);
  CHECK(bare.named_parameters().size() == 2 * 12);
}

TEST_CASE("an encoder's layer is the formula of its parts", "[sequences]") {
  generator gen(2);
  const tensor x = randn<float>(gen, {2, 5, 8});
  for (const bool norm_first : {false, true}) {
    const nn::transformer_encoder_layer layer(8, 2, gen,
                                              {.feedforward_features = 12,
                                               .dropout = 0,
                                               .activation = nn::feedforward::gelu,
                                               .batch_first = true,
                                               .norm_first = norm_first});
    const auto hidden = [&](const tensor<float, 3>& h) -> tensor<float, 3> {
      return linear(gelu(linear(h, layer.linear1.weight.detach(), layer.linear1.bias.detach())),
                    layer.linear2.weight.detach(), layer.linear2.bias.detach());
    };
    const auto norm = [](const auto& n, const tensor<float, 3>& h) -> tensor<float, 3> {
      return layer_norm(h, n.weight.detach(), n.bias.detach(), n.eps);
    };
    const auto attend = [&](const tensor<float, 3>& h) -> tensor<float, 3> { return layer.self_attn(h).detach(); };
    tensor<float, 3> h = norm_first ? eval(x + attend(norm(layer.norm1, x))) : norm(layer.norm1, eval(x + attend(x)));
    h = norm_first ? eval(h + hidden(norm(layer.norm2, h))) : norm(layer.norm2, eval(h + hidden(h)));
    CHECK(distance(layer(x).detach(), h) < 2e-6);
    CHECK(distance(layer(x[0]).detach(), h[0]) < 2e-6);
  }
}

TEST_CASE("a causal decoder sees what its mask would let it see, padding is not seen", "[sequences]") {
  generator gen(3);
  const tensor x = randn<float>(gen, {2, 3, 8}), memory = randn<float>(gen, {2, 4, 8});
  nn::transformer_options options{.feedforward_features = 8, .dropout = 0, .batch_first = true, .causal = true};
  const nn::transformer_decoder decoder(8, 2, 2, gen, options);
  options.causal = false;
  nn::transformer_decoder free_decoder(8, 2, 2, gen, options);
  nn::load_state(free_decoder, nn::state(decoder));
  const tensor<bool, 2> causal{{true, false, false}, {true, true, false}, {true, true, true}};
  CHECK(distance(decoder(x, memory).detach(), free_decoder(x, memory, causal).detach()) < 1e-6);

  const tensor seen = nn::padding_mask(std::vector{4, 2}, 4);
  CHECK(seen.shape() == extents<4>{{2, 1, 1, 4}});
  CHECK((seen(0, 0, 0, 3) && seen(1, 0, 0, 1) && !seen(1, 0, 0, 2)));
  const tensor padded = decoder(x, memory, nn::no_mask, seen).detach();
  CHECK(distance(padded[1], decoder(x[1], memory[1].slice(0, 0, 2)).detach()) < 1e-6);
  CHECK_THROWS_WITH(nn::padding_mask(std::vector{5}, 4), Catch::Contains("length 5 of sequence 0"));
}

TEST_CASE("rotary positions make scores depend on distances", "[sequences]") {
  generator gen(4);
  const tensor q = randn<float>(gen, {1, 2, 3, 8}), k = randn<float>(gen, {1, 2, 3, 8});
  const auto scores_at = [&](index_t first) {
    const nn::rotary_positions turn(8, first, 3);
    return eval(matmul(eval(turn(q)), eval(turn(k)).transpose()));
  };
  CHECK(distance(scores_at(0), scores_at(1000)) < 2e-4);
  CHECK(distance(scores_at(0), eval(matmul(q, k.transpose()))) > 0.1);
  CHECK(distance(nn::rotary_positions(8, 3, 2).cos(), nn::rotary_positions(8, 0, 5).cos().slice(0, 3, 5)) == 0);
  CHECK(distance(nn::rotary_positions(8, 0, 9, {.factor = 2}).sin().slice(0, 0, 9, 2),
                 nn::rotary_positions(8, 0, 5).sin()) < 1e-7);
}

TEST_CASE("Llama's scaling leaves fast pairs, slows down slow ones, and blends between", "[sequences]") {
  // The frequencies of `rope_type: llama3` of transformers 4.4x for base 10000, 8 elements, factor 8, low 1, high 4 and
  // a context of 100: wavelengths 6.28, 62.8, 628 and 6283.
  const nn::rotary_positions turn(8, 1, 1, {.llama3 = nn::llama3_scaling{8, 1, 4, 100}});
  const double slow =
      0.1 * ((1 - (100 * 0.1 / 6.283185307179586 - 1) / 3) / 8 + (100 * 0.1 / 6.283185307179586 - 1) / 3);
  const tensor<double, 2> expected{{std::sin(1.0), std::sin(slow), std::sin(0.01 / 8), std::sin(0.001 / 8)}};
  CHECK(distance(turn.sin(), expected) < 1e-7);
}

TEST_CASE("sinusoidal positions and ALiBi are their formulas", "[sequences]") {
  const tensor p = nn::sinusoidal_positions(4, 6, 2);
  for (index_t t = 0; t < 4; ++t)
    for (index_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(t + 2) / std::pow(10000, 2.0 * static_cast<double>(i) / 6);
      CHECK(std::abs(double{p(t, 2 * i)} - std::sin(angle)) < 1e-7);
      CHECK(std::abs(double{p(t, 2 * i + 1)} - std::cos(angle)) < 1e-7);
    }
  const nn::alibi four(4), six(6);
  CHECK(four.slopes[0] == 0.25f);
  CHECK(four.slopes[3] == 0.00390625f);
  // The paper's code for 6 heads: those of 4, then the first and third of 8.
  CHECK(six.slopes[3] == 0.00390625f);
  CHECK(six.slopes[4] == 0.5f);
  CHECK(six.slopes[5] == 0.125f);
  generator gen(5);
  const variable q = randn<float>(gen, {1, 6, 5, 4}), k = randn<float>(gen, {1, 6, 5, 4});
  const tensor bias = zeros<float>({1, 6, 5, 5});
  for (index_t h = 0; h < 6; ++h)
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 5; ++j)
        bias(0, h, i, j) = six.slopes[static_cast<std::size_t>(h)] * static_cast<float>(j - i);
  variable y = attention(q, k, k, six, {.causal = true});
  CHECK(distance(y.detach(), eval(attention(q, k, k, bias, {.causal = true})).detach()) < 1e-6);
  sum(y * y).backward();
  const tensor gradient = q.grad().clone();
  q.zero_grad();
  variable z = attention(q, k, k, bias, {.causal = true});
  sum(z * z).backward();
  CHECK(distance(gradient, q.grad()) < 1e-6);
}

TEST_CASE("positions that are none are refused", "[sequences]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(nn::rotary_positions(7, 0, 3), Contains("elements come in pairs"));
  CHECK_THROWS_WITH(nn::rotary_positions(8, -1, 3), Contains("3 positions from -1"));
  CHECK_THROWS_WITH(nn::rotary_positions(8, 0, 3, {.turned = 10}), Contains("10 of 8 elements turn"));
  CHECK_THROWS_WITH(nn::rotary_positions(8, 0, 3, {.base = 0}), Contains("base and factor are positive"));
  CHECK_THROWS_WITH(nn::rotary_positions(8, 0, 3, {.llama3 = nn::llama3_scaling{8, 4, 1, 100}}),
                    Contains("low is less"));
  CHECK_THROWS_WITH(nn::sinusoidal_positions(4, 5), Contains("4 positions from 0 of 5 elements"));
  CHECK_THROWS_WITH(nn::alibi(0), Contains("0 heads"));
  CHECK_THROWS_WITH(nn::alibi(129), Contains("1 to 128"));
  const nn::rotary_positions turn(8, 0, 3);
  CHECK_THROWS_WITH(eval(turn(zeros<float>({2, 4, 8}))), Contains("angles of shape (3, 4)"));
  CHECK_THROWS_WITH(eval(turn(zeros<float>({3, 6}))), Contains("turn 8 elements of a row"));
}

TEST_CASE("the page of sequences does what it says of transformers", "[sequences]") {
  generator gen(6);
  const tensor source = randn<float>(gen, {2, 7, 32}), target = randn<float>(gen, {2, 5, 32});
  // [docs:transformer]
  const nn::transformer_encoder encoder(32, 4, 2, gen, {.feedforward_features = 64, .batch_first = true});
  const variable memory = encoder(source, nn::padding_mask(std::vector{7, 4}, 7));  // sample 1 has 4 tokens of 7
  const nn::transformer_decoder decoder(32, 4, 2, gen, {.batch_first = true, .causal = true});
  const variable y = decoder(target, memory);
  // [docs:end]
  CHECK(y.shape() == target.shape());
  const variable q = randn<float>(gen, {2, 4, 9, 8}), k = randn<float>(gen, {2, 4, 9, 8});
  // [docs:positions]
  const nn::rotary_positions turn(8, 0, 9);  // heads of 8, positions 0 to 8
  const variable a = attention(turn(q), turn(k), k, {.causal = true});
  const variable b = attention(q, k, k, nn::alibi(4), {.causal = true});
  const variable c = target + nn::sinusoidal_positions(5, 32);  // (N,5,32)
  // [docs:end]
  CHECK(a.shape() == b.shape());
  CHECK(c.shape() == target.shape());
}

TEST_CASE("lengths may stand in braces", "[sequences]") {
  CHECK(same_bits(nn::padding_mask({3, 1}, 4), nn::padding_mask(std::vector<int>{3, 1}, 4)));
}
