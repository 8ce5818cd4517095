// tests/package/mixed/gpu.hpp: what the file for nvcc offers to the one for the host compiler.
#pragma once

#include <sinter/sinter.hpp>

struct on_gpu {
  sinter::tensor<float, 2, sinter::cuda<0>> x;
  sinter::variable<float, 1, sinter::cuda<0>> w;
};

on_gpu send(const sinter::tensor<float, 2>& x);
sinter::tensor<float, 2> twice(const on_gpu& there);
sinter::tensor<float, 2> in_order(const on_gpu& there);
/// Is sorts.cu in the program?
bool others_sort();
