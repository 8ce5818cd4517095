// tests/flags/constants.cpp: lists of numbers in braces arrive as they are written; returns how many do not. See
// core/as_written.hpp for what g++ 12.2 makes of some.
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

int wrong = 0;

template <class V>
double number(const V& values, std::size_t i) {
  if constexpr (requires { V::rank; }) return static_cast<double>(values[static_cast<int>(i)]);
  else return static_cast<double>(values[i]);
}

/// Compares values with numbers that the compiler cannot see through.
template <class V, class... N>
void check(const char* what, const V& values, N... expected) {
  const volatile double at[] = {static_cast<double>(expected)...};
  bool right = true;
  for (std::size_t i = 0; i < sizeof...(N); ++i) right = right && number(values, i) == at[i];
  if (right) return;
  std::printf("wrong: %s is", what);
  for (std::size_t i = 0; i < sizeof...(N); ++i) std::printf(" %g", number(values, i));
  std::printf(", not");
  for (std::size_t i = 0; i < sizeof...(N); ++i) std::printf(" %g", at[i]);
  std::printf("\n");
  ++wrong;
}

/// What is compiled apart from its use, as a function of a program would be.
#define CHECK_LIST(expression, ...)                               \
  {                                                               \
    struct {                                                      \
      [[gnu::noinline]] static auto made() { return expression; } \
    } f;                                                          \
    check(#expression, f.made(), __VA_ARGS__);                    \
  }
#define CHECK_TENSOR(type, rank, literal, ...)                                                  \
  {                                                                                             \
    struct {                                                                                    \
      [[gnu::noinline]] static tensor<type, rank> made() { return tensor<type, rank> literal; } \
    } f;                                                                                        \
    const auto t = f.made();                                                                    \
    check(#literal " of " #type, t.data(), __VA_ARGS__);                                        \
  }
#define LIST(...) {__VA_ARGS__}

}  // namespace

int main() {
  CHECK_TENSOR(double, 1, LIST(1, 1, 1, 0), 1, 1, 1, 0)
  CHECK_TENSOR(double, 1, LIST(2, 2, 0, 0), 2, 2, 0, 0)
  CHECK_TENSOR(double, 1, LIST(3, 3, 3, 0, 3, 3, 3, 0), 3, 3, 3, 0, 3, 3, 3, 0)
  CHECK_TENSOR(double, 2, LIST({4, 4, 4, 0}, {5, 5, 5, 0}), 4, 4, 4, 0, 5, 5, 5, 0)
  CHECK_TENSOR(double, 3, LIST({{4, 4}, {4, 0}}), 4, 4, 4, 0)
  CHECK_TENSOR(std::int64_t, 1, LIST(1, 1, 1, 0), 1, 1, 1, 0)
  CHECK_TENSOR(std::int64_t, 1, LIST(-2, -2, -2, -1), -2, -2, -2, -1)
  CHECK_TENSOR(std::int64_t, 1, LIST(6, 6, 6, 0, 7), 6, 6, 6, 0, 7)
  CHECK_TENSOR(std::int64_t, 2, LIST({7, 7}, {7, 0}), 7, 7, 7, 0)
  CHECK_TENSOR(float, 1, LIST(1, 1, 1, 1, 1, 1, 0, 0), 1, 1, 1, 1, 1, 1, 0, 0)
  CHECK_TENSOR(float, 2, LIST({1, 2}, {1, 2}, {1, 2}, {0, 0}), 1, 2, 1, 2, 1, 2, 0, 0)
  CHECK_TENSOR(std::int32_t, 1, LIST(3, 3, 3, 3, 0, 0, 0, 0), 3, 3, 3, 3, 0, 0, 0, 0)
  CHECK_TENSOR(std::uint8_t, 1,
               LIST(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0), 1,
               1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
  CHECK_LIST((extents<4>{{1, 1, 1, 0}}), 1, 1, 1, 0)
  CHECK_LIST(zeros<float>({2, 2, 2, 0}).shape(), 2, 2, 2, 0)
  CHECK_LIST(empty<double>({3, 3, 0, 0}).shape(), 3, 3, 0, 0)
  CHECK_LIST(zeros<float>({0}).reshape({4, 4, 4, 0}).shape(), 4, 4, 4, 0)
  CHECK_LIST(zeros<float>({1, 1, 1, 0}).broadcast_to({5, 5, 5, 0}).shape(), 5, 5, 5, 0)
  CHECK_LIST(eval(pad(zeros<float>({1, 1}), {6, 6, 6, 0})).shape(), 7, 13)
  CHECK_LIST(eval(pad(zeros<float>({1, 1}), {7, 7, 0, 0})).shape(), 1, 15)
  CHECK_LIST(zeros<float>(extents<4>{{9, 9, 9, 0}}).shape(), 9, 9, 9, 0)
  CHECK_LIST(eval(conv2d(ones<float>({1, 1, 5, 5}), ones<float>({1, 1, 3, 3}))).shape(), 1, 1, 3, 3)
  CHECK_LIST(eval(conv2d(ones<float>({1, 1, 5, 5}), ones<float>({1, 1, 3, 3}), {.stride = {2, 2}})).shape(), 1, 1, 2, 2)
  CHECK_LIST(eval(max_pool2d(ones<float>({1, 1, 6, 6}), {2, 2}, {.stride = {2, 2}, .padding = {0, 0}})).shape(), 1, 1,
             3, 3)
  CHECK_LIST(eval(avg_pool2d(ones<float>({1, 1, 6, 6}), 2)).shape(), 1, 1, 3, 3)
  CHECK_LIST(eval(unfold(ones<float>({1, 1, 4, 4}), 2)).shape(), 1, 4, 9)
  CHECK_LIST(eval(interpolate(ones<float>({1, 1, 2, 2}), {.size = {4, 4}})).shape(), 1, 1, 4, 4)
  CHECK_LIST(sum(ones<float>({2, 3, 4, 5}), {1, 1 + 1}).shape(), 2, 5)
  CHECK_LIST(ones<float>({2, 3, 4, 5}).permute({1, 0, 3, 2}).shape(), 3, 2, 5, 4)
  return wrong;
}
