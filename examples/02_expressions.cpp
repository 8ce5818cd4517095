// Shows what an expression is: a value that runs in one pass when it is assigned, and knows its device.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/02_expressions.cpp -o expressions -pthread
// ctest:
#include <cstdio>
#include <iostream>

#include <sinter/sinter.hpp>

using namespace sinter;

// Generic over devices: `auto` in, `auto` out. Nothing runs in here.
auto swish(const auto& x, float beta) { return x * sigmoid(beta * x); }

int main() {
  generator gen(1);
  const tensor x = randn<float>(gen, {4, 3});
  const tensor row = tensor<float, 1>{0.1f, 0.2f, 0.3f};

  // The type of an expression is what will be computed; `row` broadcasts over the rows of x.
  auto e = relu(swish(x, 2) + row);
  static_assert(kernel_count<decltype(e)> == 1);
  std::cout << "e is not computed yet. It will be:\n" << explain(e);
  tensor y = e;  // one pass over memory
  std::cout << "\ny = " << y << "\n";

  // A reduction takes the elementwise work around it into its kernel.
  std::cout << "\n" << explain(sqrt(sum(square(x - row), 1)));

  // let: what is used more than once is computed once, in a register.
  y = let(exp(x), [](auto t) { return t / (1 + t); });

  // fuse: several results from one pass; every right side reads the values from before it.
  tensor m = zeros_like(x);
  tensor w = x.clone();
  const auto next = 0.9f * m + 0.1f * y;
  fuse(m = next, w -= 0.5f * next);

  // Gradients: an expression over a variable evaluates to a variable, with a backward derived from its type.
  variable v = w;
  variable loss = mean(square(swish(v, 1.5f) - y));
  loss.backward();
  std::printf("\nloss %.4f, its gradient has norm %.4f\n", static_cast<double>(loss.item()),
              static_cast<double>(eval(norm(v.grad())).item()));

  // Devices are types. Node 0 and node 1 of a machine are two devices, a GPU would be another: cuda<0>.
  const tensor there = x.to<numa<1>>();
  auto f = swish(there, 2);
  static_assert(on_device<decltype(f), numa<1>>);
  static_assert(!addable<decltype(f), decltype(row)>);  // f + row does not compile:
  tensor z = eval(f).to<cpu>() + row;                   // one operand is copied to the other's device
  std::cout << "\ndevice of f: " << device_name<device_of<decltype(f)>>() << ", first row of z = " << z[0] << "\n";

  // An expression owns what it refers to: it may leave the scope that built it.
  const auto kept = [&] {
    const tensor local = full<float>({4, 3}, 2);
    return local * x - 1;
  }();
  std::cout << "largest of kept: " << eval(max(kept)).item() << "\n";
}
