// tests/judge/rows_binary.cpp: arithmetic of several tensors, broadcast.
#include "tables.hpp"

namespace judge {

using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;

std::vector<row> binary_rows() {
  return {
      binary<float, i16, u8>("op:add onnx:Add", OF_XY(x + y)),
      binary<float, u8>("onnx:Sub", OF_XY(x - y)),
      binary<float>("op:rsub", OF_XY(y - in.number("2 alpha", 1) * x)),
      binary<float, i8, i16, i32, i64, u8>("op:mul onnx:Mul", OF_XY(x * y)),
      binary<float, i8, i16, i32, u8>("op:div.no_rounding_mode op:true_divide onnx:Div", OF_XY(x / y)),
      binary<float, i8, i16, i32, i64, u8>("op:floor_divide", OF_XY(floor_divide(x, y))),
      binary<float, i8, i16, i32, i64, u8>("op:div.floor_rounding",
                                           OF_XY((in.only_text("2 rounding_mode", "floor"), floor_divide(x, y)))),
      binary<float>("op:div.trunc_rounding", OF_XY((in.only_text("2 rounding_mode", "trunc"), trunc(x / y)))),
      binary<i8, i16, i32, i64, u8>("op:div.trunc_rounding", OF_XY((in.only_text("2 rounding_mode", "trunc"), x / y))),
      binary<float, i32, i64>("op:pow onnx:Pow", OF_XY(pow(x, y))),
      binary<float>("op:atan2", OF_XY(atan2(x, y))),
      binary<float>("op:hypot", OF_XY(hypot(x, y))),
      binary<float>("op:fmod", OF_XY(fmod(x, y))),
      binary<float>("op:remainder", OF_XY(remainder(x, y))),
      on<float, double, i8, i16, i32, i64, u8>("onnx:Mod",
                                               [](const auto& in) {
                                                 const auto x = in.template x<4>("0");
                                                 const auto y = in.template x<4>("1");
                                                 if (in.flag("fmod", false)) in.give(fmod(x, y));
                                                 else in.give(remainder(x, y));
                                               }),
      binary<float, double, i8, i16, i32, i64, u8>("op:maximum op:max.binary onnx:Max", OF_XY(maximum(x, y))),
      binary<float, double, i8, i16, i32, i64, u8>("op:minimum op:min.binary onnx:Min", OF_XY(minimum(x, y))),
      binary<float, double, i8, i16, i32, i64, u8>("op:fmax", OF_XY(fmax(x, y))),
      binary<float, double, i8, i16, i32, i64, u8>("op:fmin", OF_XY(fmin(x, y))),
      binary<float>("op:xlogy", OF_XY(xlogy(x, y))),
      binary<float>("op:logaddexp", OF_XY(logaddexp(x, y))),
      binary<float>("op:logaddexp2", OF_XY(logaddexp2(x, y))),
      binary<float>("op:float_power", OF_XY(float_power(x, y))),
      binary<float>("onnx:Sum", OF_XY(x + y)),
      binary<float>("op:clamp_max", OF_XY(clamp_max(x, y))),
      ternary<float>("op:clamp onnx:Clip", OF_XYZ(clamp(x, y, z))),
      binary<float>("op:clamp", OF_XY((in.absent("2 max"), clamp_min(x, y)))),
      on<float>("op:clamp",
                [](const auto& in) {
                  in.absent("1 min");
                  in.give(clamp_max(in.template x<4>("0"), in.template x<4>("2 max")));
                }),
      binary<float>("op:clamp_min", OF_XY(clamp_min(x, y))),
      on<float>("op:addcmul",
                [](const auto& in) {
                  in.give(addcmul(in.template x<4>("0"), in.template x<4>("1"), in.template x<4>("2"),
                                  in.number("value", 1)));
                }),
      on<float>("op:addcdiv",
                [](const auto& in) {
                  in.give(addcdiv(in.template x<4>("0"), in.template x<4>("1"), in.template x<4>("2"),
                                  in.number("value", 1)));
                }),
      on<float>("op:isclose",
                [](const auto& in) {
                  const sinter::closeness o{in.number("2 rtol", 1e-5), in.number("3 atol", 1e-8),
                                            in.flag("4 equal_nan", false)};
                  in.give(isclose(in.template constant<float, 4>("0"), in.template constant<float, 4>("1"), o));
                }),
      // Not elementwise: the steps may cancel.
      on<float>(
          "op:lerp",
          [](const auto& in) { in.give(lerp(in.template x<4>("0"), in.template x<4>("1"), in.template x<4>("2"))); }),
      on<float, i64>("onnx:Where",
                     [](const auto& in) {
                       in.give(where(in.template constant<bool, 4>("0"), in.template x<4>("1"), in.template x<4>("2")));
                     }),
      on<float>("op:masked_fill",
                [](const auto& in) {
                  in.give(
                      masked_fill(in.template x<4>("0"), in.template constant<bool, 4>("1"), in.template x<4>("2")));
                }),
  };
}

std::vector<row> comparison_rows() {
  return {
      binary<float, i8, i32, u8, bool>("op:eq onnx:Equal", OF_XY(x == y)),
      binary<float>("op:ne", OF_XY(x != y)),
      binary<float, i8, u8>("op:gt onnx:Greater", OF_XY(x > y)),
      binary<float, i16, u8>("op:ge onnx:GreaterOrEqual", OF_XY(x >= y)),
      binary<float, i8, i16, u8>("op:lt onnx:Less", OF_XY(x < y)),
      binary<float, i8, i16, u8>("op:le onnx:LessOrEqual", OF_XY(x <= y)),
      binary<float, bool>("op:logical_and onnx:And", OF_XY(logical_and(x, y))),
      binary<float, bool>("op:logical_or onnx:Or", OF_XY(logical_or(x, y))),
      binary<float, bool>("op:logical_xor onnx:Xor", OF_XY(logical_xor(x, y))),
      unary<float, bool>("op:logical_not", OF_X(logical_not(x))),
  };
}

}  // namespace judge
