// tests/nn/members_test.cpp: modules listed by SINTER_MEMBERS, and what their types say without being told.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

template <device D = cpu, class Kind = nn::tracked>
struct block : nn::module<block<D, Kind>> {
  nn::linear<float, D, Kind> fc;
  nn::buffer<float, 1, D> seen;
  nn::mode state;
  double factor = 1;
  nn::relu activation;

  template <class X>
  auto forward(const X& x) const {
    return activation(fc(x)) * factor;
  }
  SINTER_MEMBERS(activation, fc, seen, state, factor);
};

// Neither a template nor an aggregate, with members that others do not see.
class network : public nn::module<network> {
 public:
  explicit network(generator& gen) : fc_(3, 2, gen) {}
  auto forward(const tensor<float, 2>& x) const { return fc_(x); }
  SINTER_MEMBERS(fc_);

 private:
  nn::linear<> fc_;
};

struct empty_module : nn::module<empty_module> {
  SINTER_MEMBERS();
};

struct many : nn::module<many> {
  bool a = true, b = true, c = true;
  double d = 0;
  int e = 0;
  SINTER_MEMBERS(e, d, c, b, a);  // in another order, with room between them
};

struct forgetful : nn::module<forgetful> {
  nn::linear<> a;
  nn::relu b;
  nn::linear<> c;
  SINTER_MEMBERS(a, b);
};

template <class M>
concept moves = requires(const M& m) { m.template to<numa<0>>(); };
template <class M>
concept shows_plain = requires(const M& m) { infer(m); };

}  // namespace

static_assert(std::is_same_v<device_of<block<numa<1>>>, numa<1>>);
static_assert(std::is_same_v<block<numa<1>>::rebind<cpu, nn::plain>, block<cpu, nn::plain>>);
static_assert(moves<block<>> && shows_plain<block<>>);
static_assert(!moves<network> && !shows_plain<network>);
static_assert(!shows_plain<nn::sequential<nn::relu, network>>);
static_assert(!nn::detail::lists_all_members<forgetful>());
static_assert(nn::detail::lists_all_members<many>() && nn::detail::lists_all_members<empty_module>());

TEST_CASE("a list names members in its order") {
  generator gen(1);
  const block<> model{{}, nn::linear(3, 2, gen), zeros<float>({2}), {}, 2.0, {}};
  REQUIRE(model.named_parameters().size() == 2);
  CHECK(model.named_parameters()[0].name == "fc.weight");
  CHECK(model.named_buffers()[0].name == "seen");
  const tensor x = randn<float>(gen, {4, 3});
  const tensor expected = eval(relu(model.fc(x)) * 2.f).value();
  CHECK(max(abs(eval(infer(model)(x)) - expected)).item() == 0.f);
  const auto there = model.to<numa<0>>();
  CHECK(there.factor == 2.0);
  CHECK(max(abs(eval(there(x.to<numa<0>>())).value().to<cpu>() - expected)).item() == 0.f);
}

TEST_CASE("a class with private members is a module") {
  generator gen(2);
  network model(gen);
  CHECK(model.parameter_count() == 8);
  CHECK(eval(model(ones<float>({1, 3}))).shape() == extents<2>{{1, 2}});
  model.eval();
  CHECK(empty_module().named_parameters().empty());
  CHECK(many().parameter_count() == 0);
}
