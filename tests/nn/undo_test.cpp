// tests/nn/undo_test.cpp: what calls and blocks that throw put back: buffers, generators, gradients.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <stdexcept>

using namespace sinter;

namespace {

struct refused : std::runtime_error {
  refused() : std::runtime_error("refused") {}
};

/// Throws while it is told to.
struct gate : nn::module<gate> {
  bool open = true;
  template <class X>
  auto forward(const X& x) const {
    if (!open) throw refused();
    return sinter::eval(x);
  }
  SINTER_MEMBERS(open);
};

/// Counts its calls in a buffer, drops by a module of its own that ends with the call, and goes on where its gate is
/// shut.
struct patient : nn::module<patient> {
  nn::buffer<float, 1> calls;
  nn::batch_norm1d<float> norm;
  gate inner;
  mutable generator source;

  template <class X>
  auto forward(const X& x) const {
    calls.value() += 1.f;
    const auto dropped = nn::dropout(0.5, source)(x);
    using given = decltype(sinter::eval(inner(norm(dropped))));
    try {
      return given(run(dropped));
    } catch (const refused&) {
      return given(dropped * 1.f);
    }
  }
  SINTER_MEMBERS(calls, norm, inner, source);

 private:
  /// A call of a module of its own: the norm moves only where the gate lets pass.
  template <class X>
  auto run(const X& x) const {
    const nn::sequential both{norm, inner};
    return sinter::eval(both(x));
  }
};

auto model_with(const gate& last) {
  generator gen(3);
  return nn::sequential{nn::batch_norm1d<float>(4), nn::dropout(0.5, gen), nn::linear(4, 2, gen), last};
}
template <class M>
void shut(M& model, bool yes = true) {
  model.template get<3>().open = !yes;
}

template <class X>
std::vector<float> values(const X& x) {
  const auto all = eval(x).contiguous();
  return {all.data(), all.data() + all.numel()};
}

}  // namespace

TEST_CASE("a call of a module that throws puts buffers and generators back") {
  generator gen(1);
  const auto x = randn<float>(gen, {6, 4});
  auto model = model_with({});
  auto same = model_with({});
  shut(model);
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(model(x), refused);
  const auto& norm = model.get<0>();
  CHECK(values(norm.running_mean.value()) == std::vector<float>(4, 0.f));
  CHECK(values(norm.running_var.value()) == std::vector<float>(4, 1.f));
  CHECK(norm.num_batches_tracked.value().item() == 0);
  CHECK(model.get<1>().source.offset() == same.get<1>().source.offset());
  shut(model, false);
  CHECK(values(eval(model(x)).value()) == values(eval(same(x)).value()));
  CHECK(values(norm.running_mean.value()) == values(same.get<0>().running_mean.value()));
}

TEST_CASE("a call inside of another one that goes on is undone alone") {
  generator gen(1);
  const auto x = randn<float>(gen, {6, 4});
  patient m{{}, zeros<float>({1}), nn::batch_norm1d<float>(4), {}, generator(7)};
  m.inner.open = false;
  variable<float, 2> y = x;
  y = m(y);
  CHECK(m.calls.value()(0) == 1);
  CHECK(m.norm.num_batches_tracked.value().item() == 0);
  CHECK(m.source.offset() == 1);
  m.inner.open = true;
  y = m(y);
  CHECK(m.calls.value()(0) == 2);
  CHECK(m.norm.num_batches_tracked.value().item() == 1);
}

TEST_CASE("a block with undo_on_error that an exception leaves has changed nothing") {
  generator gen(1);
  const auto x = randn<float>(gen, {6, 4});
  for (const bool has_gradient : {false, true}) {
    const auto model = model_with({});
    optim::sgd optimizer(model, {.lr = 0.1});
    const auto& weight = model.get<2>().weight;
    const auto pass = [&] { variable(mean(square(model(x)))).backward(); };
    if (has_gradient) pass();
    const auto before = has_gradient ? values(weight.grad()) : std::vector<float>();
    const auto moments = values(model.get<0>().running_var.value());
    const std::uint64_t draws = model.get<1>().source.offset();
    const auto fail = [&] {
      nn::undo_on_error step;
      pass();
      rand<float>(gen, {2});
      CHECK(values(model.get<0>().running_var.value()) != moments);
      throw refused();
    };
    const std::uint64_t own = gen.offset();
    CHECK_THROWS_AS(fail(), refused);
    CHECK(weight.has_grad() == has_gradient);
    if (has_gradient) CHECK(values(weight.grad()) == before);
    CHECK(values(model.get<0>().running_var.value()) == moments);
    CHECK(model.get<1>().source.offset() == draws);
    CHECK(gen.offset() == own);
  }
}

TEST_CASE("the step of an optimizer is final in a block with undo_on_error") {
  generator gen(1);
  const auto x = randn<float>(gen, {6, 4});
  const auto model = model_with({}), same = model_with({});
  optim::sgd optimizer(model, {.lr = 0.1}), optimizer_of_same(same, {.lr = 0.1});
  const auto step = [&](const auto& m, auto& by, bool fails) {
    nn::undo_on_error changes;
    variable(mean(square(m(x)))).backward();
    by.step();
    if (fails) throw refused();
  };
  CHECK_THROWS_AS(step(model, optimizer, true), refused);
  step(same, optimizer_of_same, false);
  CHECK(values(model.get<0>().running_var.value()) == values(same.get<0>().running_var.value()));
  CHECK(values(model.get<2>().weight.value()) == values(same.get<2>().weight.value()));
  CHECK(values(model.get<2>().weight.grad()) == values(same.get<2>().weight.grad()));
}

TEST_CASE("a generator that ends before the block is not written to") {
  std::optional<generator> gen(std::in_place, 5u);
  const auto fail = [&] {
    nn::undo_on_error block;
    rand<float>(*gen, {2});
    gen.reset();
    throw refused();
  };
  CHECK_THROWS_AS(fail(), refused);
  CHECK(!gen.has_value());
}
