// tests/sequences/recurrent_test.cpp: recurrent layers and cells. tests/kernels has their ops, tests/judge PyTorch's
// cases.
#include <sinter/sequences.hpp>
#include "distance.hpp"

using namespace sinter;

namespace {

template <class E>
auto value_of(const E& e) {
  if constexpr (is_tracked_v<E>) return e.detach();
  else return e;
}
std::vector<std::string> names_of(const auto& module) {
  std::vector<std::string> names;
  for (const auto& p : module.named_parameters()) names.push_back(p.name);
  return names;
}

}  // namespace

TEST_CASE("recurrent layers have PyTorch's parameters, uniform within 1 / sqrt(hidden)", "[sequences]") {
  generator gen(1);
  const nn::lstm both(3, 4, gen, {.layers = 2, .bidirectional = true, .projection = 2});
  CHECK(names_of(both) ==
        std::vector<std::string>{
            "weight_ih_l0",         "weight_hh_l0",         "bias_ih_l0",           "bias_hh_l0",
            "weight_hr_l0",         "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
            "bias_hh_l0_reverse",   "weight_hr_l0_reverse", "weight_ih_l1",         "weight_hh_l1",
            "bias_ih_l1",           "bias_hh_l1",           "weight_hr_l1",         "weight_ih_l1_reverse",
            "weight_hh_l1_reverse", "bias_ih_l1_reverse",   "bias_hh_l1_reverse",   "weight_hr_l1_reverse"});
  CHECK(both.layer(1).ih.shape() == extents<2>{{16, 4}});
  CHECK(both.layer(1, true).hh.shape() == extents<2>{{16, 2}});
  CHECK(names_of(nn::gru(3, 4, gen, {.bias = false})) == std::vector<std::string>{"weight_ih_l0", "weight_hh_l0"});
  CHECK(names_of(nn::rnn_cell(3, 4, gen)) == std::vector<std::string>{"weight_ih", "weight_hh", "bias_ih", "bias_hh"});
  both.for_each_parameter([](const std::string&, const auto& p) {
    const double most = eval(max(abs(p.value()))).item();
    CHECK(most <= 0.5);
    CHECK(most > 0.1);
  });
}

TEST_CASE("a sequence in two parts gives what it gives in one, and gradients stop where the state is detached",
          "[sequences]") {
  generator gen(2);
  const tensor x = randn<float>(gen, {5, 3, 2});
  const auto check = [&](const auto& layer) {
    const auto [all, last] = layer(x, nn::zero_state);
    const auto [first, between] = layer(x.slice(0, 0, 2), nn::zero_state);
    const auto [second, end] = layer(x.slice(0, 2, 5), between.detach());
    CHECK(distance(concat(0, first, second).detach(), all.detach()) < 1e-5);
    const auto h = [](const auto& s) {
      if constexpr (requires { s.h; }) return s.h.detach();
      else return s.detach();
    };
    CHECK(distance(h(end), h(last)) < 1e-5);
    layer.zero_grad();
    sum(second).backward();
    const tensor apart = layer.layer(0).hh.grad().clone();
    layer.zero_grad();
    const auto again = layer(x.slice(0, 0, 2), nn::zero_state);
    sum(layer(x.slice(0, 2, 5), again.state).output).backward();
    CHECK(distance(layer.layer(0).hh.grad(), apart) > 1e-5);
  };
  check(nn::lstm(2, 4, gen, {.layers = 2}));
  check(nn::lstm(2, 4, gen, {.projection = 3}));
  check(nn::gru(2, 4, gen, {.bias = false}));
  check(nn::rnn(2, 4, gen, {.nonlinearity = nonlinearity::relu}));
}

TEST_CASE("cells do one step of a layer", "[sequences]") {
  generator gen(3);
  const tensor x = randn<float>(gen, {4, 3, 2});
  const nn::lstm lstm(2, 5, gen);
  nn::lstm_cell cell(2, 5, gen);
  cell.parameters() = lstm.layer(0);
  auto state = cell(x[0]);
  for (index_t t = 1; t < 4; ++t) state = cell(x[t], state);
  const auto [output, last] = lstm(x, nn::zero_state);
  CHECK(distance(state.h.detach(), output.detach()[3]) < 1e-6);
  CHECK(distance(state.c.detach(), last.c.detach()[0]) < 1e-6);

  const nn::gru_cell gru(2, 5, gen);
  const auto one = gru(x[0][1]);  // one sequence, without its axis
  CHECK(one.shape() == extents<1>{{5}});
  CHECK(distance(gru(x[1], gru(x[0])).detach()[1], gru(x[1][1], one).detach()) < 1e-6);
}

TEST_CASE("a packed batch gives what each sequence gives alone, with its gradients", "[sequences]") {
  generator gen(4);
  const std::vector<index_t> lengths{2, 0, 5, 3, 5};
  const tensor x = randn<float>(gen, {5, 5, 3});
  const tensor weights = randn<float>(gen, {5, 5, 8});
  const auto check = [&](const auto& layer) {
    layer.zero_grad();
    const auto packed = pack_padded_sequence(x, lengths, {.enforce_sorted = false});
    CHECK(packed.steps.rows() == 15);
    const auto [out, state] = layer(packed, nn::zero_state);
    const auto [values, known] = pad_packed_sequence(out);
    CHECK(known == lengths);
    const auto h = [](const auto& s) {
      if constexpr (requires { s.h; }) return s.h;
      else return s;
    };
    variable loss = sum(values * weights) + sum(h(state));
    loss.backward();
    const tensor together = layer.layer(1, true).hh.grad().clone(), inputs = layer.layer(0).ih.grad().clone();
    layer.zero_grad();
    for (index_t n = 0; n < 5; ++n) {
      const index_t length = lengths[static_cast<std::size_t>(n)];
      const tensor rest = values.detach().select(1, n).slice(0, length, 5);
      if (length < 5) CHECK(eval(max(abs(rest))).item() == 0);
      if (length == 0) {
        CHECK(eval(max(abs(h(state).detach().select(1, n)))).item() == 0);
        continue;
      }
      const auto [alone, last] = layer(x.select(1, n).slice(0, 0, length), nn::zero_state);
      CHECK(distance(alone.detach(), values.detach().select(1, n).slice(0, 0, length)) < 1e-5);
      CHECK(distance(h(last).detach(), h(state).detach().select(1, n)) < 1e-5);
      variable part = sum(alone * weights.select(1, n).slice(0, 0, length)) + sum(h(last));
      part.backward();
    }
    CHECK(distance(layer.layer(1, true).hh.grad(), together) < 1e-4);
    CHECK(distance(layer.layer(0).ih.grad(), inputs) < 1e-4);
  };
  check(nn::lstm(3, 4, gen, {.layers = 2, .bidirectional = true}));
  check(nn::gru(3, 4, gen, {.layers = 2, .bidirectional = true}));
  check(nn::rnn(3, 4, gen, {.layers = 2, .bidirectional = true}));
}

TEST_CASE("states of a packed batch stand in the order of the batch", "[sequences]") {
  generator gen(5);
  const nn::gru gru(2, 3, gen);
  const tensor x = randn<float>(gen, {4, 3, 2}), h = randn<float>(gen, {1, 3, 3});
  const auto packed = pack_padded_sequence(x, std::vector{1, 4, 2}, {.enforce_sorted = false});
  const auto [out, last] = gru(packed, h);
  for (index_t n = 0; n < 3; ++n) {
    const index_t length = std::vector{1, 4, 2}[static_cast<std::size_t>(n)];
    const auto alone = gru(x.select(1, n).slice(0, 0, length), h.select(1, n));
    CHECK(distance(alone.state.detach()[0], last.detach()[0][n]) < 1e-5);
  }
}

TEST_CASE("packed sequences come back as they were, padded as asked for", "[sequences]") {
  generator gen(6);
  const tensor x = randn<float>(gen, {3, 4, 2});
  const tensor lengths = tensor<std::int32_t, 1>{4, 3, 1};
  const auto packed = pack_padded_sequence(x, lengths, {.batch_first = true});
  const auto [values, known] =
      pad_packed_sequence(packed, {.batch_first = true, .padding_value = -1, .total_length = 6});
  CHECK(values.shape() == extents<3>{{3, 6, 2}});
  CHECK(known == std::vector<index_t>{4, 3, 1});
  CHECK(distance(values[1].slice(0, 0, 3), x[1].slice(0, 0, 3)) == 0);
  CHECK(values(1, 3, 0) == -1);
  CHECK(values(2, 5, 1) == -1);
  auto nothing = pack_padded_sequence(x, std::vector{0, 0, 0}, {.batch_first = true});
  CHECK(nothing.steps.rows() == 0);
  CHECK(pad_packed_sequence(nothing, {.batch_first = true}).values.shape() == extents<3>{{3, 0, 2}});
  CHECK(distance(nn::lstm(2, 3, gen)(nothing, nn::zero_state).state.c.detach(), zeros<float>({1, 3, 3})) == 0);
}

TEST_CASE("dropout works between layers, in training only", "[sequences]") {
  generator gen(7);
  nn::lstm lstm(2, 64, gen, {.layers = 2, .dropout = 0.5});
  const tensor x = randn<float>(gen, {3, 2, 2});
  const tensor first = lstm(x).detach(), second = lstm(x).detach();
  CHECK(distance(first, second) > 1e-3);
  CHECK(eval(min(abs(first))).item() > 0);  // nothing is dropped behind the last layer
  lstm.eval();
  CHECK(distance(lstm(x).detach(), lstm(x).detach()) == 0);
  CHECK(distance(infer(lstm)(x), lstm(x).detach()) == 0);
}

TEST_CASE("recurrent layers move, load, and stand in a sequential", "[sequences]") {
  generator gen(8);
  const nn::lstm lstm(2, 5, gen, {.layers = 2, .batch_first = true, .bidirectional = true});
  const tensor x = randn<float>(gen, {3, 4, 2});
  const auto moved = lstm.to<numa<0>>();
  CHECK(distance(moved(x.to<numa<0>>()).detach().to<cpu>(), lstm(x).detach()) == 0);
  const nn::lstm other(2, 5, gen, {.layers = 2, .batch_first = true, .bidirectional = true});
  CHECK(distance(other(x).detach(), lstm(x).detach()) > 0.01);
  nn::load_state(other, nn::state(lstm));
  CHECK(distance(other(x).detach(), lstm(x).detach()) == 0);
  const nn::sequential model{lstm, nn::linear(10, 3, gen)};
  CHECK(infer(model)(x).shape() == extents<3>{{3, 4, 3}});
  CHECK(model.named_parameters().back().name == "1.bias");
  CHECK(nn::state(model)[0].name == "0.weight_ih_l0");
}

TEST_CASE("what does not fit a recurrent layer is named", "[sequences]") {
  using Catch::Contains;
  generator gen(9);
  const nn::lstm lstm(2, 5, gen);
  const tensor x = randn<float>(gen, {3, 4, 2});
  CHECK_THROWS_WITH(lstm(x.slice(2, 0, 1)), Contains("elements of 1 features; the layer takes 2"));
  const auto state = nn::lstm_state{zeros<float>({1, 3, 5}), zeros<float>({1, 3, 5})};
  CHECK_THROWS_WITH(lstm(x, state), Contains("a state of shape (1, 3, 5) for 4 sequences; it must be (1, 4, 5)"));
  CHECK_THROWS_WITH(pack_padded_sequence(x, std::vector{3, 2, 4, 1}),
                    Contains("length 4 of sequence 2 lies outside [0, 3]"));
  CHECK_THROWS_WITH(pack_padded_sequence(x, std::vector{1, 2, 3, 1}), Contains("the lengths grow"));
  CHECK_THROWS_WITH(pack_padded_sequence(x, std::vector{1}), Contains("1 lengths for 4 sequences"));
  CHECK_THROWS_WITH(pad_packed_sequence(pack_padded_sequence(x, std::vector{3, 3, 3, 3}), {.total_length = 2}),
                    Contains("shorter than the longest sequence, 3"));
  CHECK_THROWS_WITH(nn::lstm(2, 5, gen, {.layers = 0}), Contains("0 layers"));
  CHECK_THROWS_WITH(nn::lstm(2, 5, gen, {.projection = 5}), Contains("a projection to 5 of 5 hidden units"));
  CHECK_THROWS_WITH(nn::gru(2, 5, gen, {.projection = 2}), Contains("only an lstm has a projection"));
  CHECK_THROWS_WITH(nn::lstm(2, 5, gen, {.dropout = 1.5}), Contains("must be in [0, 1]"));
  CHECK_THROWS_WITH(lstm.layer(1), Contains("there is no layer 1 among 1"));
  CHECK_THROWS_WITH(nn::gru_cell(2, 5, gen)(x[0], zeros<float>({3, 5})), Contains("a state of shape (3, 5) for 4"));
  CHECK_THROWS_AS(sequence_steps({1, 2}), value_error);
}

TEST_CASE("the page of sequences does what it says", "[sequences]") {
  generator gen(10);
  const tensor x = randn<float>(gen, {7, 3, 16}), next = randn<float>(gen, {7, 3, 16});
  // [docs:layer]
  const nn::lstm lstm(16, 32, gen, {.layers = 2, .dropout = 0.1});
  const variable output = lstm(x);                         // (T,N,16) => (T,N,32)
  const auto [first, state] = lstm(x, nn::zero_state);     // and the state after the last elements
  const auto [second, last] = lstm(next, state.detach());  // goes on; gradients stop at the detached state
  const tensor same = infer(lstm)(x);                      // plain tensors, nothing is recorded
  // [docs:end]
  CHECK(output.shape() == extents<3>{{7, 3, 32}});
  CHECK(last.h.shape() == extents<3>{{2, 3, 32}});
  CHECK(same.shape() == second.shape());

  // [docs:packed]
  const auto packed = pack_padded_sequence(x, std::vector{4, 7, 0}, {.enforce_sorted = false});  // 11 elements, not 21
  const auto [of_elements, ends] = lstm(packed, nn::zero_state);  // ends: of each sequence at its own last element
  const auto [values, lengths] = pad_packed_sequence(of_elements);
  // [docs:end]
  CHECK(values.shape() == extents<3>{{7, 3, 32}});
  CHECK(lengths == std::vector<index_t>{4, 7, 0});
  CHECK(ends.c.shape() == extents<3>{{2, 3, 32}});

  // [docs:cell]
  const nn::gru_cell cell(16, 32, gen);
  variable h = cell(x[0]);  // from zeros
  for (index_t t = 1; t < x.extent(0); ++t) h = cell(x[t], h);
  // [docs:end]
  CHECK(h.shape() == extents<2>{{3, 32}});

  // [docs:weights]
  nn::lstm biased(16, 32, gen);
  biased.layer(0).bias_ih.value().slice(0, 32, 64) = 1.0f;  // the forget gate begins open
  // [docs:end]
  CHECK(biased.layer(0).bias_ih.value()(40) == 1.0f);
}

namespace {

template <class M, class... A>
concept takes = requires(const M& m, const A&... a) { m(a...); };

}  // namespace

TEST_CASE("recurrent layers say what they do not take", "[sequences]") {
  generator gen(3);
  CHECK_THROWS_WITH(nn::lstm(5, 3, gen, {.nonlinearity = nonlinearity::relu}), Catch::Contains("only an rnn"));
  CHECK_NOTHROW(nn::rnn(5, 3, gen, {.nonlinearity = nonlinearity::relu}));
  CHECK(takes<nn::lstm<>, tensor<float, 3>>);
  CHECK_FALSE(takes<nn::lstm<>, tensor<double, 3>>);
  CHECK_FALSE(takes<nn::lstm<>, tensor<float, 4>>);
  CHECK_FALSE(takes<nn::lstm<>, tensor<float, 3>, tensor<float, 3>>);  // h without c
  CHECK(takes<nn::gru<>, tensor<float, 3>, tensor<float, 3>>);
  CHECK_FALSE(takes<nn::gru<>, tensor<float, 3>, nn::lstm_state<tensor<float, 3>>>);
  CHECK_FALSE(takes<nn::gru_cell<>, tensor<double, 2>>);
  CHECK_FALSE(takes<nn::sequential<nn::lstm<>, nn::linear<>>, tensor<double, 3>>);
}

TEST_CASE("a packed batch goes on from a state that is no constant", "[sequences]") {
  generator gen(3);
  const auto x = randn<float>(gen, {3, 2, 5});
  const auto packed = pack_padded_sequence(x, {3, 2});
  const nn::lstm lstm(5, 4, gen);
  auto [first, state] = lstm(packed, nn::zero_state);
  auto [second, last] = lstm(packed, state.detach());
  auto [third, same] = lstm(packed, state);
  CHECK(distance(second.data.detach(), third.data.detach()) == 0);
  nn::gru gru(5, 4, gen);
  auto [a, h] = gru(packed, nn::zero_state);
  auto [b, more] = gru(packed, h);
  CHECK(more.shape() == h.shape());
}

TEST_CASE("a prepared recurrent layer takes packed sequences", "[recurrent]") {
  generator gen(21);
  const nn::lstm lstm(8, 16, gen);
  const auto packed = pack_padded_sequence(randn(gen, {5, 3, 8}), {5, 2, 4}, {.enforce_sorted = false});
  const auto ready = nn::prepare(lstm);
  const auto y = ready(packed, nn::zero_state), expected = infer(lstm)(packed, nn::zero_state);
  CHECK(max_abs_difference(y.output.data, expected.output.data) < 1e-5);
}
