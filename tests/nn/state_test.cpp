// tests/nn/state_test.cpp: the state of a model by name: taken out, put back, and what does not fit.
#include "../catch.hpp"

#include <cstring>

#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

template <device D = cpu, class Kind = nn::tracked, class T = float>
struct block : nn::module<block<D, Kind, T>> {
  using device_type = D;
  using kind = Kind;
  template <device To, class K>
  using rebind = block<To, K, T>;

  nn::linear<T, D, Kind> fc;
  nn::buffer<std::int64_t, 0, D> count;
  nn::mode state;

  SINTER_MEMBERS(fc, count, state);
};

template <class T = float>
auto make(index_t in, index_t out, std::uint64_t seed) {
  generator gen(seed);
  return block<cpu, nn::tracked, T>{{}, nn::linear<T>(in, out, gen), full<std::int64_t>(std::int64_t(seed)), {}};
}

std::vector<std::string> names_of(const nn::state_dict& state) {
  std::vector<std::string> names;
  for (const auto& entry : state) names.push_back(entry.name);
  return names;
}

template <class T>
T first_of(const host_tensor& t) {
  T x;
  std::memcpy(&x, t.bytes.data(), sizeof x);
  return x;
}

}  // namespace

TEST_CASE("a state is a copy of parameters and buffers, by name") {
  const nn::sequential model{make(3, 2, 7), nn::relu()};
  const nn::state_dict state = nn::state(model);
  CHECK(names_of(state) == std::vector<std::string>{"0.fc.weight", "0.fc.bias", "0.count"});
  CHECK(state[0].value.shape == std::vector<index_t>{2, 3});
  CHECK(state[0].value.element == element_kind::float32);
  CHECK(state[0].value.bytes.size() == 24);
  CHECK(first_of<std::int64_t>(state[2].value) == 7);
  const float before = first_of<float>(state[0].value);
  model.get<0>().fc.weight.value() += 1.f;
  CHECK(first_of<float>(state[0].value) == before);
  CHECK(nn::state(block<>()).empty());  // nothing has a value
}

TEST_CASE("load_state puts a state back, on any device and through views") {
  const auto from = make(3, 2, 1);
  const auto to = make(3, 2, 2);
  nn::load_state(to, nn::state(from));
  CHECK(max(abs(to.fc.weight.value() - from.fc.weight.value())).item() == 0.f);
  CHECK(to.count.value().item() == 1);
  const auto there = make(3, 2, 3).to<numa<0>>();
  nn::load_state(there, nn::state(from));
  CHECK(max(abs(there.fc.weight.value().to<cpu>() - from.fc.weight.value())).item() == 0.f);
  auto crossed = make(2, 3, 4);
  crossed.fc.weight = crossed.fc.weight.value().transpose();
  crossed.fc.bias = zeros<float>({2});
  nn::load_state(crossed, nn::state(from));
  CHECK(max(abs(crossed.fc.weight.value() - from.fc.weight.value())).item() == 0.f);
  const auto again = nn::state(crossed);
  CHECK(std::memcmp(again[0].value.bytes.data(), nn::state(from)[0].value.bytes.data(), 24) == 0);
}

TEST_CASE("load_state lists everything that does not fit, and loads nothing") {
  const auto model = make(3, 2, 1);
  nn::state_dict state = nn::state(make(4, 2, 2));
  state[1].name = "fc.offset";
  state[2].value.element = element_kind::float64;
  state.push_back(state[1]);
  const float before = model.fc.weight(0, 0);
  CHECK_THROWS_AS(nn::load_state(model, state), value_error);
  CHECK_THROWS_WITH(nn::load_state(model, state),
                    Contains("'fc.weight' has shape (2, 4) in the state and (2, 3) in the model") &&
                        Contains("'fc.bias' is missing") && Contains("'fc.offset' is not in the model") &&
                        Contains("'count' has elements of type double in the state and int64") &&
                        Contains("'fc.offset' is in the state twice"));
  CHECK(model.fc.weight(0, 0) == before);
  state = nn::state(make(3, 2, 2));
  state[2].value.bytes = state[2].value.bytes.first(4);
  CHECK_THROWS_WITH(nn::load_state(model, state), Contains("'count' has 4 bytes in the state, not 8"));
  CHECK(model.fc.weight(0, 0) == before);
}

TEST_CASE("load_state that is not strict passes over names, not shapes") {
  const auto model = make(3, 2, 1);
  nn::state_dict state = nn::state(make(3, 2, 2));
  state[1].name = "elsewhere";
  nn::load_state(model, state, {.strict = false});
  CHECK(model.fc.weight(0, 0) == first_of<float>(state[0].value));
  state[0].value.shape = {3, 2};
  CHECK_THROWS_WITH(nn::load_state(model, state, {.strict = false}), Contains("'fc.weight' has shape"));
}

TEST_CASE("load_state converts floating-point elements on request only") {
  const auto model = make<float>(3, 2, 1);
  const auto precise = make<double>(3, 2, 2);
  CHECK_THROWS_WITH(nn::load_state(model, nn::state(precise)), Contains("pass {.convert = true}"));
  nn::load_state(model, nn::state(precise), {.convert = true});
  CHECK(model.fc.weight(1, 2) == static_cast<float>(precise.fc.weight(1, 2)));
  const auto narrow = make<bfloat16>(3, 2, 3);
  nn::load_state(model, nn::state(narrow), {.convert = true});
  CHECK(model.fc.weight(1, 2) == static_cast<float>(narrow.fc.weight(1, 2)));
}

TEST_CASE("a state made by hand may lie at any address") {
  const auto model = make(1, 1, 1);
  const float values[2] = {2, 3};
  const std::int64_t count = 5;
  std::vector<std::byte> file(17);
  std::memcpy(file.data() + 1, values, 8);
  std::memcpy(file.data() + 9, &count, 8);
  const std::span<const std::byte> bytes = file;
  nn::load_state(model, {{"count", {element_kind::int64, {}, bytes.subspan(9, 8), nullptr}},
                         {"fc.bias", {element_kind::float32, {1}, bytes.subspan(5, 4), nullptr}},
                         {"fc.weight", {element_kind::float32, {1, 1}, bytes.subspan(1, 4), nullptr}}});
  CHECK(model.fc.weight(0, 0) == 2);
  CHECK(model.fc.bias(0) == 3);
  CHECK(model.count.value().item() == 5);
}
