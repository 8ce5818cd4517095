// tests/judge/verdict.hpp: a row's work on a case, held against the truth.
//
// A number may be 4 times as far from the truth (ref, gref: float64) as PyTorch's own float32 is at that place, and in
// any case 1e-6 of the true magnitude. In elementwise ops that is the element's own. Where terms cancel it is a larger
// one: in ops that work along axes the largest of the tensor; for a gradient the largest of all gradients of the case,
// since that of a broadcast operand is a sum of terms like the others', and along axes the largest of the cotangent
// too. ONNX has no truth: 1e-3 of the element and 1e-7, as its own tests. What is not floating point has to be equal.
//
// What the row leaves out makes the form not there, so that no case passes by half: an argument that it does not read,
// a result that it does not give, a gradient, a buffer after the call. Buffers have no truth: 1e-5 of the largest
// element of PyTorch's.
#pragma once

#include "tables.hpp"

namespace judge {

struct verdict {
  enum class kind { pass, fail, no_form, no_op } what = kind::pass;
  std::string why;

  void fail(std::string text) {
    if (what != kind::fail) *this = {kind::fail, std::move(text)};
  }
};

/// By the first row for the op under this name, such as "op:sum", that has the form.
verdict judged(const test_case& c, const std::string& name, const rows_by_name& rows);

/// Judges cases whose verdicts are known, and prints where it finds another; false if it does anywhere.
bool self_test(const rows_by_name& rows);

}  // namespace judge
