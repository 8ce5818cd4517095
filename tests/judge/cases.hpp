// tests/judge/cases.hpp: cases of other people for the library's ops, as they lie in a folder: cases.idx and cases.dat.
//
// cases.dat holds the tensors, row-major and little-endian. cases.idx is text with fields between tabs. A line begins
// with
//   C name group op ...          a case
//   P slot kind value            an argument of the call, by place or keyword (PyTorch)
//   M constructor json           those of a module's constructor, as Python writes them; the module was in training
//                                mode unless the name of the case ends in .eval
//   O inputs outputs             names (ONNX), an empty one is an input left out
//   A name kind value            an attribute (ONNX)
//   T role name dtype shape offset nbytes   a tensor; roles: in, param, buffer, out, ref (the result in float64), cot
//                                           (the gradient of the result), grad and gref (those of the inputs, in
//                                           float32 and float64), bufafter (a buffer after the call)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sinter/sinter.hpp"

namespace judge {

using sinter::index_t;
using shape = std::vector<index_t>;

struct array {
  std::string role, name, dtype;
  shape extents;
  std::vector<char> bytes;
};

/// T is a tensor's name, Ts several; i, f, b, s are an integer, a number, a bool, text; is and fs are lists between
/// commas, d an element type, n is None, j anything else.
struct argument {
  std::string kind, value;
};

/// The slots of arguments: 0, 1, ... and keywords; of a module those of forward, and c0, c1, ... and keywords of the
/// constructor, self.weight and the like for parameters and buffers, and `training`. An ONNX input that is left out has
/// no slot.
struct test_case {
  std::string name, op;
  bool onnx = false;
  std::map<std::string, argument> arguments;
  std::vector<array> arrays;

  const array* find(const std::string& role, const std::string& name_of_array) const {
    for (const array& a : arrays)
      if (a.role == role && a.name == name_of_array) return &a;
    return nullptr;
  }
};

/// Errors: io_error where a file is missing or cut short.
std::vector<test_case> read_cases(const std::string& folder);

/// The text between separators; of an empty text none.
std::vector<std::string> split(const std::string& text, char separator);

/// The name of element type T in the files.
template <class T>
std::string dtype_of() {
  if constexpr (std::is_same_v<T, float>) return "float32";
  else if constexpr (std::is_same_v<T, double>) return "float64";
  else return sinter::element_name<T>();
}

/// Any array as numbers.
std::vector<double> numbers(const array& a);

}  // namespace judge
