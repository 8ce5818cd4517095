// tests/cuda/blas_test.cpp: what a product hands to the BLAS: its batch, the work that follows it, its precision.
#include "compare.hpp"

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;

namespace {

/// The launches of f on cuda<0>, whose values must be those on the CPU.
template <class F, class... T>
std::size_t launches_of(const F& f, const T&... at) {
  const auto expected = f(at...);
  const auto there = std::make_tuple(at.template to<g0>()...);
  const auto before = launches<g0>();
  const auto got = std::apply(f, there);
  const auto n = launches<g0>() - before;
  CHECK(distance(got, expected) < 1e-5);
  return n;
}

/// A real BLAS may have no algorithm for so small a product with what follows it.
bool inside(std::size_t kernels) { return kernels == 1 || (SINTER_WITH_CUDA && kernels == 2); }

}  // namespace

TEST_CASE("bias and activation run inside the product", "[cuda]") {
  const auto x = numbers({7, 5}, 1), w = numbers({12, 5}, 2), full = numbers({7, 12}, 4), column = numbers({7, 1}, 5);
  const auto row = numbers({12}, 3);
  const auto plain = [](const auto& a, const auto& b, const auto&) { return eval(linear(a, b)); };
  const auto biased = [](const auto& a, const auto& b, const auto& c) { return eval(linear(a, b) + c); };
  CHECK(launches_of(plain, x, w, row) == 1);
  CHECK(inside(launches_of(biased, x, w, row)));
  CHECK(inside(launches_of(biased, x, w, row.unsqueeze(0))));
  CHECK(inside(
      launches_of([](const auto& a, const auto& b, const auto& c) { return eval(c + linear(a, b)); }, x, w, row)));
  CHECK(inside(
      launches_of([](const auto& a, const auto& b, const auto& c) { return eval(relu(linear(a, b, c))); }, x, w, row)));
  CHECK(inside(
      launches_of([](const auto& a, const auto& b, const auto&) { return eval(relu(linear(a, b))); }, x, w, row)));
  CHECK(inside(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(gelu_tanh(linear(a, b, c))); },
                           x, w, row)));
  CHECK(inside(
      launches_of([](const auto& a, const auto& b, const auto&) { return eval(gelu_tanh(linear(a, b))); }, x, w, row)));
  // What is no tail follows in one kernel.
  CHECK(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(gelu(linear(a, b, c))); }, x, w,
                    row) == 2);
  CHECK(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(tanh(linear(a, b, c))); }, x, w,
                    row) == 2);
  CHECK(launches_of(biased, x, w, full) == 2);
  CHECK(launches_of(biased, x, w, column) == 2);
  const auto sliced = [](const auto& a, const auto& b, const auto& c) {
    return eval(linear(a, b) + c.slice(0, 1, 13));
  };
  const auto strided = [](const auto& a, const auto& b, const auto& c) {
    return eval(linear(a, b) + c.slice(0, 0, 24, 2));
  };
  CHECK(launches_of(sliced, x, w, numbers({13}, 3)) == 2);  // off the alignment
  CHECK(launches_of(strided, x, w, numbers({24}, 3)) == 2);
  CHECK(launches_of([](const auto& a, const auto& b, const auto&) { return eval(matmul(a, b.transpose()) + 1); }, x, w,
                    row) == 2);
}

TEST_CASE("bias and activation inside a tracked product, and its gradients", "[cuda]") {
  const auto x = numbers({7, 5}, 1), w = numbers({12, 5}, 2);
  const auto row = numbers({12}, 3);
  CHECK(compare::gradients([](const auto& a, const auto& b, const auto& c) { return eval(relu(linear(a, b, c))); }, x,
                           w, row) < 1e-5);
  CHECK(compare::gradients([](const auto& a, const auto& b, const auto& c) { return eval(gelu_tanh(linear(a, b, c))); },
                           x, w, row) < 1e-5);
  const variable v = w.to<g0>();
  const auto on_gpu = x.to<g0>();
  const auto bias = row.to<g0>();
  const auto before = launches<g0>();
  const variable y = relu(linear(on_gpu, v, bias));
  CHECK(inside(launches<g0>() - before));
}

TEST_CASE("NaN goes through a product that ends in relu", "[cuda]") {
  auto x = zeros<float>({4, 4});
  x(1, 2) = std::nanf("");
  const auto bias = zeros<float>({4});
  CHECK(compare::values([](const auto& a, const auto& b) { return eval(relu(linear(a, a + 1, b))); }, x, bias) < 1e-5);
}

TEST_CASE("batches of products are one call", "[cuda]") {
  const auto a = numbers({3, 7, 5}, 1), b = numbers({3, 5, 8}, 2), c = numbers({3, 8, 5}, 3);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x, y)); }, a, b) == 1);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x, y.transpose())); }, a, c) == 1);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x.slice(0, 0, 3, 2), y.slice(0, 1, 3))); }, a,
                    b) == 1);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x, y.flip(2))); }, a, b) == 1);
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x.flip(0), y)); }, a, b) ==
        1);  // not by the BLAS
  CHECK(launches_of([](const auto& x, const auto& y) { return eval(matmul(x, y)); }, numbers<int>({3, 2, 5}, 1),
                    numbers<int>({3, 5, 2}, 2)) == 1);
  CHECK(compare::gradients([](const auto& x, const auto& y) { return eval(tanh(matmul(x, y))); }, a, b) < 1e-5);
}

TEST_CASE("TF32 is used where it is asked for, and nowhere else", "[cuda]") {
  const auto a = numbers({64, 64}, 1), b = numbers({64, 64}, 2);
  const auto product = [](const auto& x, const auto& y) { return eval(matmul(x, y)); };
  const double exact = compare::values(product, a, b);
  CHECK(exact < 1e-4);
  {
    const use_matmul_precision fast(matmul_precision::tf32);
    const double rounded = compare::values(product, a, b);  // the CPU takes no notice
    CHECK(rounded > 1e-3);
    CHECK(rounded < 0.5);
    {
      const use_matmul_precision slow(matmul_precision::float32);
      CHECK(compare::values(product, a, b) == exact);
    }
    CHECK(compare::values(product, numbers<double>({8, 8}, 1), numbers<double>({8, 8}, 2)) < 1e-12);
  }
  CHECK(compare::values(product, a, b) == exact);
}

namespace {

/// The launches of backward from y, without that of its seed.
template <class Y>
std::size_t launches_back(const Y& y) {
  const auto seed = ones_like(y.value());
  const auto before = launches<g0>();
  y.backward(seed);
  return launches<g0>() - before;
}

/// A real BLAS may have no algorithm that takes work along in so small a product.
bool within(std::size_t kernels, std::size_t fewest, std::size_t most) {
  return kernels == fewest || (SINTER_WITH_CUDA && kernels > fewest && kernels <= most);
}

const auto two_layers = [](const auto& x, const auto& v, const auto& c, const auto& w, const auto& b) {
  return eval(linear(relu(linear(x, v, c)), w, b));
};

}  // namespace

TEST_CASE("the gradient of a bias without an activation is summed in the product for that of the weights", "[cuda]") {
  const auto x = numbers({7, 5}, 1), w = numbers({12, 5}, 2), turned = numbers({5, 12}, 2);
  const auto row = numbers({12}, 3);
  const auto layer = [](const auto& a, const auto& b, const auto& c) { return eval(linear(a, b, c)); };
  const auto product = [](const auto& a, const auto& b, const auto& c) { return eval(c + matmul(a, b)); };
  CHECK(compare::gradients(layer, x, w, row) < 1e-5);
  CHECK(compare::gradients(product, x, turned, row) < 1e-5);
  const variable a(x.to<g0>()), b(w.to<g0>()), t(turned.to<g0>());
  const variable c(row.to<g0>());
  CHECK(within(launches_back(layer(a.value(), b, c)), 1, 2));
  c.zero_grad();
  CHECK(within(launches_back(product(a.value(), t, c)), 1, 2));
  for (const auto* leaf : {&a, &b, &t}) leaf->zero_grad();
  c.zero_grad();
  CHECK(within(launches_back(layer(a, b, c)), 2, 3));
  CHECK(within(launches_back(layer(a, b, c)), 3, 4));  // one adds all to the gradients that there are
  for (const auto* leaf : {&a, &b}) leaf->zero_grad();
  CHECK(launches_back(layer(a, b, c.value())) == 2);
  c.zero_grad();
  a.zero_grad();
  CHECK(launches_back(layer(a, b.value(), c)) == 2);  // there is no product to sum in
  // the bias of one row or one column, no rows at all, and what is no bias
  CHECK(compare::gradients(layer, numbers({1, 5}, 1), w, row) < 1e-5);
  CHECK(compare::gradients(layer, x, numbers({1, 5}, 2), numbers({1}, 3)) < 1e-5);
  CHECK(compare::gradients(layer, numbers({0, 5}, 1), w, row) == 0);
  // what is added up at once over an axis of one element
  CHECK(compare::gradients([](const auto& l, const auto& r, const auto& o) { return eval(sum(linear(l, r, o), 1)); }, x,
                           numbers({1, 5}, 2), numbers({1}, 3)) < 1e-5);
  CHECK(compare::gradients([](const auto& l, const auto& r, const auto& o) { return eval(sum(linear(l, r, o), 0)); },
                           numbers({1, 5}, 1), w, row) < 1e-5);
  CHECK(compare::gradients([](const auto& l, const auto& r, const auto& o) { return eval(sum(linear(l, r, o))); },
                           numbers({1, 5}, 1), numbers({1, 5}, 2), numbers({1}, 3)) < 1e-5);
  for (const auto& other : {numbers({1, 12}, 4), numbers({7, 1}, 4), numbers({7, 12}, 4)})
    CHECK(compare::gradients([](const auto& l, const auto& r, const auto& o) { return eval(linear(l, r) + o); }, x, w,
                             other) < 1e-5);
  CHECK(compare::gradients([](const auto& l, const auto& r) { return eval(linear(l, r) + linear(l, r)); }, x, w) <
        1e-5);
  CHECK(compare::gradients(layer, numbers<bfloat16>({8, 16}, 1), numbers<bfloat16>({16, 16}, 2),
                           numbers<bfloat16>({16}, 3)) < 0.05);
}

TEST_CASE("the derivative of relu runs inside the product that makes its gradient", "[cuda]") {
  const auto x = numbers({7, 5}, 1), v = numbers({140, 5}, 2), w = numbers({6, 140}, 4);
  const auto c = numbers({140}, 3), b = numbers({6}, 5);
  CHECK(compare::gradients(two_layers, x, v, c, w, b) < 1e-4);
  const auto bare_layers = [](const auto& a, const auto& first, const auto& second) {
    return eval(matmul(eval(relu(matmul(a, first))), second));
  };
  CHECK(compare::gradients(bare_layers, x, numbers({5, 130}, 2), numbers({130, 3}, 4)) < 1e-4);
  const variable a(x.to<g0>()), v1(v.to<g0>()), w2(w.to<g0>());
  const variable c1(c.to<g0>()), b2(b.to<g0>());
  const auto forget = [&] {
    v1.zero_grad();
    c1.zero_grad();
    w2.zero_grad();
    b2.zero_grad();
  };
  // two products for the weights, and one between them
  CHECK(within(launches_back(two_layers(a.value(), v1, c1, w2, b2)), 3, 5));
  CHECK(within(launches_back(two_layers(a.value(), v1, c1, w2, b2)), 4,
               6));  // one adds all to the gradients that there are
  forget();
  CHECK(within(launches_back(two_layers(a.value(), v1, c1.value(), w2.value(), b2.value())), 2, 3));
  forget();
  {  // the result of the first layer is somebody's
    const auto h = eval(relu(linear(a.value(), v1, c1)));
    CHECK(within(launches_back(eval(linear(h, w2, b2))), 4, 5));
    forget();
  }
  {
    const auto h = eval(relu(linear(a.value(), v1, c1)));
    h.retain_grad();
    CHECK(within(launches_back(eval(linear(h, w2, b2))), 4, 5));
    CHECK(distance(h.grad(), eval(matmul(ones<float>({7, 6}), w))) < 1e-4);
  }
  // two consumers, one of them older; a consumer that is no product; a view
  const auto twice = [](const auto& p, const auto& q, const auto& r, const auto& s) {
    const auto h = eval(relu(linear(p, q)));
    return eval(linear(h, r) + linear(h, s));
  };
  CHECK(compare::gradients(twice, x, v, w, numbers({6, 140}, 6)) < 1e-4);
  CHECK(compare::gradients([](const auto& p, const auto& q,
                              const auto& r) { return eval(tanh(eval(relu(linear(p, q))).slice(1, 0, 100)) * r); },
                           x, v, numbers({7, 100}, 6)) < 1e-4);
  CHECK(compare::gradients([](const auto& p, const auto& q,
                              const auto& r) { return eval(matmul(eval(relu(linear(p, q))).transpose(), r)); },
                           x, v, numbers({7, 4}, 6)) < 1e-4);
  // zero has no slope
  auto odd = x.clone();
  for (index_t j = 0; j < 5; ++j) odd(4, j) = 0;
  CHECK(compare::gradients(
            [&](const auto& q, const auto& r) {
              return eval(linear(eval(relu(linear(odd.to<device_of<decltype(q)>>(), q))), r));
            },
            v, w) < 1e-4);
}

TEST_CASE("gelu_tanh keeps its argument, and its derivative runs inside the next product", "[cuda]") {
  const auto layers = [](const auto& x, const auto& v, const auto& c, const auto& w, const auto& b) {
    return eval(linear(gelu_tanh(linear(x, v, c)), w, b));
  };
  const auto layer = [](const auto& x, const auto& v, const auto& c) { return eval(gelu_tanh(linear(x, v, c))); };
  const auto x = numbers({7, 5}, 1), v = numbers({141, 5}, 2), w = numbers({6, 141}, 4);
  const auto c = numbers({141}, 3), b = numbers({6}, 5);
  CHECK(compare::gradients(layer, x, v, c) < 1e-4);
  CHECK(compare::gradients(layers, x, v, c, w, b) < 2e-4);  // a BLAS has the formula with tanh
  CHECK(compare::gradients(
            [](const auto& p, const auto& q, const auto& r) { return eval(matmul(gelu_tanh(matmul(p, q)), r)); }, x,
            numbers({5, 9}, 2), numbers({9, 3}, 4)) < 1e-4);
  const variable a(x.to<g0>()), v1(v.to<g0>()), w2(w.to<g0>());
  const variable c1(c.to<g0>()), b2(b.to<g0>());
  const auto forget = [&] {
    v1.zero_grad();
    c1.zero_grad();
    w2.zero_grad();
    b2.zero_grad();
  };
  const auto before = launches<g0>();
  const auto y = layers(a.value(), v1, c1, w2, b2);
  CHECK(within(launches<g0>() - before, 2, 4));
  CHECK(within(launches_back(y), 3, 6));
  forget();
  // the last activation has no product after it: a kernel of its own, and the sums in the product for the weights
  CHECK(within(launches_back(layer(a.value(), v1, c1)), 2, 3));
  CHECK(within(launches_back(layer(a.value(), v1, c1)), 3, 4));  // one adds all to the gradients that there are
  forget();
  CHECK(within(launches_back(layer(a, v1.value(), c1)), 3, 4));  // no product for the weights
  // a bias that is a row of a matrix, that only is tracked, that is younger; none is the product's
  CHECK(
      compare::gradients([](const auto& p, const auto& q, const auto& r) { return eval(gelu_tanh(linear(p, q) + r)); },
                         x, v, numbers({1, 141}, 3)) < 1e-4);
  CHECK(
      compare::gradients([](const auto& p, const auto& q, const auto& r) { return eval(gelu_tanh(linear(p, q) + r)); },
                         x, v, numbers({7, 1}, 3)) < 1e-4);
  CHECK(compare::gradients(
            [&](const auto& r) {
              return eval(gelu_tanh(linear(x.to<device_of<decltype(r)>>(), v.to<device_of<decltype(r)>>()) + r));
            },
            c) < 1e-4);
  CHECK(compare::gradients(
            [](const auto& p, const auto& q, const auto& r) {
              const auto bias = eval(tanh(r));
              return eval(gelu_tanh(linear(p, q) + bias));
            },
            x, v, c) < 1e-4);
  CHECK(compare::gradients([](const auto& p, const auto& q) { return eval(gelu_tanh(softmax(matmul(p, q), 1))); }, x,
                           numbers({5, 9}, 2)) < 1e-4);
  CHECK(compare::gradients(layers, numbers<bfloat16>({8, 16}, 1), numbers<bfloat16>({32, 16}, 2),
                           numbers<bfloat16>({32}, 3), numbers<bfloat16>({8, 32}, 4), numbers<bfloat16>({8}, 5)) <
        0.5);  // 0.36, and 0.29 where nothing runs inside: gradients near 0 of large parts
  {            // what was made under no_grad, and what a name shares
    const no_grad guard;
    CHECK(distance(layer(a, v1, c1).value(), layer(x, v, c)) < 1e-4);
  }
  const auto shared = linear(a, v1);
  const variable both = gelu_tanh(shared) + shared;
  both.backward(ones_like(both.value()));
  const variable a0(x.clone()), v0(v.clone());
  const auto product = linear(a0, v0);
  const variable both0 = gelu_tanh(product) + product;
  both0.backward(ones_like(both0.value()));
  CHECK(distance(both.value(), both0.value()) < 1e-4);
  CHECK(distance(v1.grad(), v0.grad()) < 1e-3);
}

TEST_CASE("a graph that is kept, a bias that was computed, and a pass that failed", "[cuda]") {
  const auto x = numbers({7, 5}, 1), v = numbers({140, 5}, 2), w = numbers({6, 140}, 4);
  const auto c = numbers({140}, 3), b = numbers({6}, 5);
  // the bias is younger than the product, and older
  const auto younger = [](const auto& p, const auto& q, const auto& r) {
    const auto product = eval(linear(p, q));
    return eval(product + eval(tanh(r)));
  };
  const auto older = [](const auto& p, const auto& q, const auto& r) {
    const auto bias = eval(tanh(r));
    return eval(linear(p, q) + bias);
  };
  const auto released = [](const auto& p, const auto& q, const auto& r) {
    auto product = eval(linear(p, q));
    const auto bias = eval(tanh(r));
    auto y = eval(product + bias);
    product = y;  // nobody holds the product any longer, whose bias is younger
    return y;
  };
  const auto between = [](const auto& p, const auto& q, const auto& r) {
    auto product = eval(linear(p, q));
    const auto other = eval(tanh(r));  // goes backward behind the tail and before the product
    auto y = eval(product + r);
    product = y;
    return eval(y + other);
  };
  CHECK(compare::gradients(between, x, v, c) < 1e-4);
  CHECK(compare::gradients(younger, x, v, c) < 1e-4);
  CHECK(compare::gradients(older, x, v, c) < 1e-4);
  CHECK(compare::gradients(released, x, v, c) < 1e-4);
  const auto of = [&](const auto& p, const auto& q, const auto& r, const auto& s, const auto& t) {
    const variable y = two_layers(p, q, r, s, t);
    const auto seed = ones_like(y.value());
    y.backward(seed, {.retain_graph = true});
    q.zero_grad();
    r.zero_grad();
    s.zero_grad();
    t.zero_grad();
    y.backward(seed);
    CHECK_THROWS_AS(y.backward(seed), autograd_error);
    return std::make_tuple(q.grad().template to<cpu>(), r.grad().template to<cpu>(), s.grad().template to<cpu>(),
                           t.grad().template to<cpu>());
  };
  const auto host = of(x, variable(v.clone()), variable(c.clone()), variable(w.clone()), variable(b.clone()));
  const auto there =
      of(x.to<g0>(), variable(v.to<g0>()), variable(c.to<g0>()), variable(w.to<g0>()), variable(b.to<g0>()));
  CHECK(distance(std::get<0>(there), std::get<0>(host)) < 1e-4);
  CHECK(distance(std::get<1>(there), std::get<1>(host)) < 1e-4);
  CHECK(distance(std::get<2>(there), std::get<2>(host)) < 1e-4);
  CHECK(distance(std::get<3>(there), std::get<3>(host)) < 1e-4);
  // weights that were overwritten stop the pass half-way; the next one starts from nothing
  const variable v1(v.to<g0>()), w2(w.to<g0>());
  const variable c1(c.to<g0>()), b2(b.to<g0>());
  const auto input = x.to<g0>();
  const variable inner(x.to<g0>());
  const variable y = two_layers(inner, v1, c1, w2, b2);
  const auto seed = ones_like(y.value());
  v1.value() += 0;
  CHECK_THROWS_AS(y.backward(seed, {.retain_graph = true}), autograd_error);
  for (const auto* one : {&v1, &w2}) one->zero_grad();
  for (const auto* one : {&c1, &b2}) one->zero_grad();
  two_layers(input, v1, c1, w2, b2).backward(seed);
  CHECK(distance(v1.grad(), std::get<0>(host)) < 1e-4);
  CHECK(distance(c1.grad(), std::get<1>(host)) < 1e-4);
  CHECK(distance(w2.grad(), std::get<2>(host)) < 1e-4);
  CHECK(distance(b2.grad(), std::get<3>(host)) < 1e-4);
}

#if !SINTER_WITH_CUDA
TEST_CASE("a pass that runs out of memory between two layers leaves nothing behind", "[cuda]") {
  const variable x(numbers({40, 64}, 1).to<g0>()), v(numbers({256, 64}, 2).to<g0>()), w(numbers({32, 256}, 4).to<g0>());
  const variable c(numbers({256}, 3).to<g0>()), b(numbers({32}, 5).to<g0>());
  const variable y = two_layers(x, v, c, w, b);
  const auto seed = numbers({40, 32}, 6).to<g0>();
  const auto gradients = [&] {
    for (const auto* leaf : {&x, &v, &w}) leaf->zero_grad();
    for (const auto* leaf : {&c, &b}) leaf->zero_grad();
    y.backward(seed, {.retain_graph = true});
    return std::make_tuple(x.grad().to<cpu>(), v.grad().to<cpu>(), c.grad().to<cpu>(), w.grad().to<cpu>(),
                           b.grad().to<cpu>());
  };
  const auto expected = gradients();
  int failures = 0;
  for (std::size_t room = 0, done = 0; done == 0; room += 4096) {
    empty_cache<g0>();
    set_memory_limit<g0>(memory<g0>().bytes_in_use + room + 1);
    try {
      gradients();
      done = 1;
    } catch (const out_of_memory&) {
      ++failures;
      CHECK((!c.has_grad() || distance(c.grad(), std::get<2>(expected)) == 0));
      CHECK((!w.has_grad() || distance(w.grad(), std::get<3>(expected)) == 0));
      CHECK((!b.has_grad() || distance(b.grad(), std::get<4>(expected)) == 0));
    }
    set_memory_limit<g0>(0);
    const auto got = gradients();
    CHECK(distance(std::get<0>(got), std::get<0>(expected)) == 0);
    CHECK(distance(std::get<1>(got), std::get<1>(expected)) == 0);
    CHECK(distance(std::get<2>(got), std::get<2>(expected)) == 0);
    CHECK(distance(std::get<3>(got), std::get<3>(expected)) == 0);
    CHECK(distance(std::get<4>(got), std::get<4>(expected)) == 0);
  }
  CHECK(failures >= 5);
}

TEST_CASE("where the BLAS refuses what follows a product, that is a kernel of its own", "[cuda]") {
  cuda_impl::gpu<g0>::has_tails() = false;
  const auto x = numbers({7, 5}, 1), w = numbers({12, 5}, 2);
  const auto row = numbers({12}, 3);
  CHECK(launches_of([](const auto& a, const auto& b, const auto& c) { return eval(relu(linear(a, b, c))); }, x, w,
                    row) == 2);
  const auto v = numbers({140, 5}, 2), last = numbers({6, 140}, 4);
  const auto middle = numbers({140}, 3), end = numbers({6}, 5);
  CHECK(compare::gradients(two_layers, x, v, middle, last, end) < 1e-4);
  const variable v1(v.to<g0>()), w2(last.to<g0>());
  const variable c1(middle.to<g0>()), b2(end.to<g0>());
  CHECK(launches_back(two_layers(x.to<g0>(), v1, c1, w2, b2)) == 5);
  CHECK(compare::gradients([](const auto& a, const auto& b, const auto& c) { return eval(gelu_tanh(linear(a, b, c))); },
                           x, w, row) < 1e-5);
  cuda_impl::gpu<g0>::has_tails() = true;
}
#endif
