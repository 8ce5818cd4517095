// tests/judge/known_cases.cpp: cases whose verdicts are known, among them such as are easily read as something else.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "verdict.hpp"

namespace judge {
namespace {

array floats(const char* role, const char* name, const shape& extents, const std::vector<float>& values) {
  array a{role, name, "float32", extents, std::vector<char>(values.size() * sizeof(float))};
  std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}
template <class T>
array integers(const char* role, const char* name, const shape& extents, const std::vector<T>& values) {
  array a{role, name, "int" + std::to_string(8 * sizeof(T)), extents, std::vector<char>(values.size() * sizeof(T))};
  std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}
array bools(const char* role, const char* name, const std::vector<char>& values) {
  return {role, name, "bool", {static_cast<index_t>(values.size())}, values};
}

struct known {
  const char* what;
  const char* op;
  std::map<std::string, argument> arguments;
  std::vector<array> arrays;
  verdict::kind expected;
  bool onnx = false;
};

/// The arguments beside a tensor x in the first place.
std::map<std::string, argument> x_and(std::map<std::string, argument> more) {
  more["0"] = {"T", "x"};
  return more;
}

std::vector<known> known_cases() {
  using enum verdict::kind;
  const argument yes{"b", "1"}, no{"b", "0"}, none{"n", ""}, one{"i", "1"};
  const array square = floats("in", "x", {2, 2}, {1, 3, 2, 6});
  const array variance = floats("out", "y", {}, {4.6666667F});
  const array of_rows = floats("out", "y", {2}, {2, 8}), of_columns = floats("out", "y", {2}, {0.5F, 4.5F});
  const array rows_1_and_0 = floats("out", "y", {2, 2}, {2, 6, 1, 3}), row_1 = floats("out", "y", {1, 2}, {2, 6});
  const array same = floats("out", "y", {2, 2}, {1, 3, 2, 6}), zeros = floats("out", "y", {2, 2}, {0, 0, 0, 0});

  // A batch of one channel with mean 3 and variance 4, unbiased 16/3.
  const array batch = floats("in", "x", {1, 1, 2, 2}, {1, 5, 1, 5}), mean = floats("buffer", "running_mean", {1}, {1});
  const array var = floats("buffer", "running_var", {1}, {1}),
              count = integers<std::int64_t>("buffer", "num_batches_tracked", {}, {4});
  const array weight = floats("param", "weight", {1}, {1}), bias = floats("param", "bias", {1}, {0});
  const std::map<std::string, argument> module = x_and({{"c0", one},
                                                        {"eps", {"f", "0.0"}},
                                                        {"self.weight", {"T", "weight"}},
                                                        {"self.bias", {"T", "bias"}},
                                                        {"self.running_mean", {"T", "running_mean"}},
                                                        {"self.running_var", {"T", "running_var"}},
                                                        {"self.num_batches_tracked", {"T", "num_batches_tracked"}}});
  const auto with = [](std::map<std::string, argument> to, const char* slot, const argument& a) {
    to[slot] = a;
    return to;
  };
  const array normalised = floats("out", "y", {1, 1, 2, 2}, {-1, 1, -1, 1});
  const auto batch_norm = [&](const array& out, float mean_after, float var_after, std::int64_t count_after) {
    return std::vector{batch,
                       mean,
                       var,
                       count,
                       weight,
                       bias,
                       out,
                       floats("bufafter", "running_mean", {1}, {mean_after}),
                       floats("bufafter", "running_var", {1}, {var_after}),
                       integers<std::int64_t>("bufafter", "num_batches_tracked", {}, {count_after})};
  };
  const array by_running = floats("out", "y", {1, 1, 2, 2}, {0, 4, 0, 4});

  return {
      // A bool is no axis.
      {"var(x, True)", "op:var", x_and({{"1", yes}}), {square, variance}, pass},
      {"var(x, False)", "op:var", x_and({{"1", no}}), {square, floats("out", "y", {}, {3.5F})}, pass},
      {"var(x, 1, True, False)", "op:var", x_and({{"1", one}, {"2", yes}, {"3", no}}), {square, of_rows}, pass},
      {"var(x, 0)", "op:var", x_and({{"1", {"i", "0"}}}), {square, of_columns}, pass},
      {"var(x, 0, False)",
       "op:var",
       x_and({{"1", {"i", "0"}}, {"2", no}}),
       {square, floats("out", "y", {2}, {0.25F, 2.25F})},
       pass},
      {"sum(x, True)", "op:sum", x_and({{"1", yes}}), {square, floats("out", "y", {2}, {4, 8})}, no_form},
      {"sum(x, dim=None)", "op:sum", x_and({{"dim", none}}), {square, floats("out", "y", {}, {12})}, pass},
      {"softmax(x, None)", "op:softmax", x_and({{"1", none}}), {square, same}, no_form},
      // A number is no bool.
      {"argmax(x, 1, keepdim=1)",
       "op:argmax",
       x_and({{"1", one}, {"keepdim", one}}),
       {square, integers<std::int64_t>("out", "y", {2, 1}, {1, 1})},
       no_form},
      {"argmax(x, 1, keepdim=True)",
       "op:argmax",
       x_and({{"1", one}, {"keepdim", yes}}),
       {square, integers<std::int64_t>("out", "y", {2, 1}, {1, 1})},
       pass},
      // A mask is no list of indices, nor is a matrix of them.
      {"x[[1, 0]]", "op:__getitem__", x_and({{"1", {"is", "1,0"}}}), {square, rows_1_and_0}, pass},
      {"x[1]", "op:__getitem__", x_and({{"1", one}}), {square, floats("out", "y", {2}, {2, 6})}, pass},
      {"x[tensor([1, 0])]",
       "op:__getitem__",
       x_and({{"1", {"T", "i"}}}),
       {square, integers<std::int64_t>("in", "i", {2}, {1, 0}), rows_1_and_0},
       pass},
      {"x[tensor([False, True])]",
       "op:__getitem__",
       x_and({{"1", {"T", "i"}}}),
       {square, bools("in", "i", {0, 1}), row_1},
       pass},
      {"x[tensor([[1, 0]])]",
       "op:__getitem__",
       x_and({{"1", {"T", "i"}}}),
       {square, integers<std::int64_t>("in", "i", {1, 2}, {1, 0}), rows_1_and_0},
       no_form},
      // A norm of order 2 of a matrix is its largest singular value, unless the order is left out.
      {"linalg.norm(x)", "op:linalg.norm", x_and({}), {square, floats("out", "y", {}, {7.0710678F})}, pass},
      {"linalg.norm(x, 2)",
       "op:linalg.norm",
       x_and({{"1", {"i", "2"}}}),
       {square, floats("out", "y", {}, {7.0710678F})},
       no_form},
      // Weights of one output are no row of a matrix.
      {"linear(x, tensor([1, 1]))",
       "op:nn.functional.linear",
       x_and({{"1", {"T", "w"}}}),
       {square, floats("in", "w", {2}, {1, 1}), floats("out", "y", {2}, {4, 8})},
       no_form},
      // Element types follow the operands.
      {"zeros_like(x)", "op:zeros_like", x_and({}), {square, zeros}, pass},
      {"arange(0.5, 2)",
       "op:arange",
       {{"0", {"f", "0.5"}}, {"1", {"i", "2"}}},
       {floats("out", "y", {2}, {0.5F, 1.5F})},
       pass},
      {"Transpose of all axes",
       "onnx:Transpose",
       x_and({}),
       {square, floats("out", "y", {2, 2}, {1, 2, 3, 6})},
       pass,
       true},
      {"MaxPool2d(1, return_indices=True)",
       "nn:MaxPool2d",
       x_and({{"c0", one}, {"c4", yes}, {"training", yes}}),
       {batch, floats("out", "y", {1, 1, 2, 2}, {1, 5, 1, 5}),
        integers<std::int64_t>("out", "i", {1, 1, 2, 2}, {0, 1, 2, 3})},
       pass},
      // What a row leaves out is not there.
      {"relu(x, inplace=True)", "op:nn.functional.relu", x_and({{"inplace", yes}}), {square, same}, no_form},
      {"relu(x, None)", "op:nn.functional.relu", x_and({{"1", none}}), {square, same}, no_form},
      {"a second result", "op:nn.functional.relu", x_and({}), {square, same, same}, no_form},
      {"a gradient of no operand",
       "op:argmax",
       x_and({}),
       {square, integers<std::int64_t>("out", "y", {}, {3}), floats("gref", "x", {2, 2}, {0, 0, 0, 1})},
       no_form},
      // Modes of a module.
      {"BatchNorm2d in eval()", "nn:BatchNorm2d", with(module, "training", no), batch_norm(by_running, 1, 1, 4), pass},
      {"BatchNorm2d in train()", "nn:BatchNorm2d", with(module, "training", yes),
       batch_norm(normalised, 1.2F, 1.4333333F, 5), pass},
      {"BatchNorm2d judged by the wrong mode", "nn:BatchNorm2d", with(module, "training", yes),
       batch_norm(by_running, 1.2F, 1.4333333F, 5), fail},
      {"BatchNorm2d whose running moments stay", "nn:BatchNorm2d", with(module, "training", yes),
       batch_norm(normalised, 1, 1, 5), fail},
      {"BatchNorm2d with momentum None", "nn:BatchNorm2d", with(with(module, "training", yes), "momentum", none),
       batch_norm(normalised, 1.4F, 1.8666667F, 5), pass},
      {"BatchNorm2d, affine=False", "nn:BatchNorm2d", with(with(module, "training", yes), "affine", no),
       batch_norm(normalised, 1.2F, 1.4333333F, 5), no_form},
      {"dropout(x, 0.5)", "op:nn.functional.dropout", x_and({{"1", {"f", "0.5"}}}), {square, same}, no_form},
      {"dropout(x, 0.5, training=False)",
       "op:nn.functional.dropout",
       x_and({{"p", {"f", "0.5"}}, {"training", no}}),
       {square, same},
       pass},
      {"dropout(x, 0.0)", "op:nn.functional.dropout", x_and({{"1", {"f", "0.0"}}}), {square, same}, pass},
      {"dropout(x, 1.0)", "op:nn.functional.dropout", x_and({{"1", {"f", "1.0"}}}), {square, zeros}, pass},
      {"Dropout(0.5) in eval()", "nn:Dropout", x_and({{"c0", {"f", "0.5"}}, {"training", no}}), {square, same}, pass},
      {"Dropout(0.5) in train()",
       "nn:Dropout",
       x_and({{"c0", {"f", "0.5"}}, {"training", yes}}),
       {square, same},
       no_form},
      // A wrong number is found.
      {"relu, wrong", "op:nn.functional.relu", x_and({}), {square, zeros}, fail},
      {"an op without a row", "op:none", x_and({}), {square, same}, no_op},
  };
}

/// What the cases of ONNX leave open, as their weights are all alike: the order of the gates, and where a layer begins.
std::vector<known> sequence_cases() {
  using enum verdict::kind;
  // The inputs by their names, without those that are left out.
  const auto with = [](const char* inputs, std::map<std::string, argument> more) {
    const std::vector<std::string> names = split(inputs, ',');
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!names[i].empty()) more[std::to_string(i)] = {"T", names[i]};
    return more;
  };
  const argument no{"i", "0"}, yes{"i", "1"};
  const std::vector<array> lstm = {floats("in", "X", {1, 1, 1}, {1}),
                                   floats("in", "W", {1, 4, 1}, {0.5F, -1, 1.5F, 2}),
                                   floats("in", "R", {1, 4, 1}, {1, 0.5F, -1, -2}),
                                   floats("in", "B", {1, 8}, {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.25F, -0.25F, -0.5F}),
                                   floats("in", "h", {1, 1, 1}, {0.5F}),
                                   floats("in", "c", {1, 1, 1}, {2}),
                                   floats("in", "P", {1, 3}, {1, 2, 3}),
                                   floats("out", "Y", {1, 1, 1, 1}, {0.41241384F}),
                                   floats("out", "Y_c", {1, 1, 1}, {2.0775228F})};
  const auto gru = [](const std::vector<float>& x, float last) {
    return std::vector{floats("in", "X", {static_cast<index_t>(x.size()), 1, 1}, x),
                       floats("in", "W", {1, 3, 1}, {0.5F, -1, 2}), floats("in", "R", {1, 3, 1}, {1, 0.5F, -2}),
                       floats("in", "B", {1, 6}, {0.1F, 0.2F, 0.3F, 0.5F, 0.25F, -0.75F}),
                       floats("out", "Y_h", {1, 1, 1}, {last})};
  };
  const std::vector<array> rnn = {
      floats("in", "X", {2, 2, 1}, {1, -0.5F, 2, 9}),
      floats("in", "W", {2, 1, 1}, {0.5F, -1}),
      floats("in", "R", {2, 1, 1}, {1, 0.25F}),
      integers<std::int32_t>("in", "lengths", {2}, {2, 1}),
      floats("out", "Y", {2, 2, 2, 1},
             {0.46211716F, -0.70865195F, 0.20899208F, 0.46211716F, 0.76159416F, -0.96402758F, 0, 0}),
      floats("out", "Y_h", {2, 2, 1}, {0.20899208F, -0.70865195F, 0.76159416F, -0.96402758F})};

  // Weights 1/4 and 3/4 of the values 0 and 4.
  const auto key = [](const char* name, const std::vector<float>& x) {
    return floats("in", name, {1, 1, static_cast<index_t>(x.size()), 1}, x);
  };
  const auto attends = [&](float y) {
    return std::vector{
        key("Q", {1}), key("K", {0, 1.0986123F}), key("V", {0, 4}),   key("k", {1.0986123F}),
        key("v", {4}), key("past_k", {0}),        key("past_v", {0}), floats("out", "Y", {1, 1, 1, 1}, {y})};
  };
  std::vector<array> masked = attends(0);
  masked.push_back(bools("in", "mask", {1}));
  masked.back().extents = {1, 1};
  std::vector<array> poisoned = masked;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  poisoned[1] = key("K", {0, nan});
  poisoned[2] = key("V", {0, nan});
  return {
      {"LSTM with gates of their own", "onnx:LSTM", with("X,W,R,B,,h,c", {{"hidden_size", yes}}), lstm, pass, true},
      {"LSTM with peepholes", "onnx:LSTM", with("X,W,R,B,,h,c,P", {}), lstm, no_form, true},
      {"LSTM in reverse", "onnx:LSTM", with("X,W,R,B,,h,c", {{"direction", {"s", "reverse"}}}), lstm, no_form, true},
      {"LSTM with clip", "onnx:LSTM", with("X,W,R,B,,h,c", {{"clip", {"f", "9"}}}), lstm, no_form, true},
      {"GRU, reset behind the product", "onnx:GRU", with("X,W,R,B", {{"linear_before_reset", yes}}),
       gru({1, -0.5F}, -0.17414027F), pass, true},
      {"GRU, reset before the product", "onnx:GRU", with("X,W,R,B", {{"linear_before_reset", no}}),
       gru({1, -0.5F}, -0.19362589F), no_form, true},
      {"GRU, reset of zeros before the product", "onnx:GRU", with("X,W,R,B", {}), gru({1}, 0.22820869F), pass, true},
      {"RNN both ways over lengths", "onnx:RNN",
       with("X,W,R,,lengths", {{"direction", {"s", "bidirectional"}}, {"layout", yes}}), rnn, pass, true},
      {"Attention to all", "onnx:Attention", with("Q,K,V", {}), attends(3), pass, true},
      {"Attention to the first", "onnx:Attention", with("Q,K,V", {{"is_causal", yes}}), attends(0), pass, true},
      {"Attention to the past", "onnx:Attention", with("Q,k,v,,past_k,past_v", {{"is_causal", yes}}), attends(3), pass,
       true},
      {"Attention with a short mask", "onnx:Attention", with("Q,K,V,mask", {}), masked, pass, true},
      {"Attention past what is no number", "onnx:Attention", with("Q,K,V,mask", {{"softcap", {"f", "2.0"}}}), poisoned,
       pass, true},
      {"Attention in half", "onnx:Attention", with("Q,K,V", {{"softmax_precision", {"i", "10"}}}), attends(3), no_form,
       true},
  };
}

/// What the reader makes of lines of cases.idx, as slot:kind=value.
bool reads_lines() {
  const auto folder = std::filesystem::temp_directory_path() / ("judge_self_test_" + std::to_string(std::rand()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "cases.dat") << "1234";
  std::ofstream(folder / "cases.idx")
      << "C\tNLLLoss#1.eval\tmodule\tNLLLoss\n"
         "M\tconstructor\t{\"args\": [\"(3, 3)\", \"(1, None)\", \"0.5\", \"None\"], "
         "\"kwargs\": {\"weight\": \"tensor([1.,\\n 2.])\", \"padding\": \"'same'\", \"bias\": \"False\"}}\n"
         "P\t0\tn\t\nT\tbuffer\tweight\tfloat32\t1\t0\t4\n"
         "C\tReLU#0\tmodule\tReLU\nM\tconstructor\t{\"args\": [], \"kwargs\": {}}\n"
         "C\tClip\tmath\tClip\nO\tx,,z\ty\n";
  const std::vector<test_case> cases = read_cases(folder.string());
  std::filesystem::remove_all(folder);
  std::string text;
  for (const test_case& c : cases) {
    for (const auto& [slot, a] : c.arguments) text += slot + ":" + a.kind + "=" + a.value + " ";
    text += "| ";
  }
  const char* expected =
      "0:n= bias:b=0 c0:is=3,3 c1:j=(1, None) c2:f=0.5 c3:n= padding:s=same self.weight:T=weight training:b=0 | "
      "training:b=1 | 0:T=x 2:T=z | ";
  if (text == expected) return true;
  std::printf("the reader makes\n  %s\nnot\n  %s\n", text.c_str(), expected);
  return false;
}

}  // namespace

bool self_test(const rows_by_name& rows) {
  static constexpr const char* names[] = {"pass", "fail", "form not there", "op not there"};
  int wrong = 0, number = 0;
  std::vector<known> all = known_cases();
  for (known& k : sequence_cases()) all.push_back(std::move(k));
  for (const known& k : all) {
    ++number;
    const verdict v = judged({k.what, "", k.onnx, k.arguments, k.arrays}, k.op, rows);
    if (v.what == k.expected) continue;
    ++wrong;
    std::printf("%s: %s, not %s (%s)\n", k.what, names[static_cast<int>(v.what)], names[static_cast<int>(k.expected)],
                v.why.c_str());
  }
  std::printf("self-test: %d of %d verdicts as they should be\n", number - wrong, number);
  return reads_lines() && wrong == 0;
}

}  // namespace judge
