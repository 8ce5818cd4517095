// tests/compile_fail/shard_device_twice.cpp: a batch cut over a device and the same one again.
// FIRST-LINE: a_device_is_listed_twice_in<(sinter::)?numa<0>, (sinter::)?cpu, (sinter::)?numa<0> ?>
// FIRST-LINE: name_each_device_once
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const tensor<float, 2>& x) { nn::shard<numa<0>, cpu, numa<0>>(x); }
#else
void f(const tensor<float, 2>& x) { nn::shard<numa<0>, cpu, numa<1>>(x); }
#endif
