// tests/io/dlpack_test.cpp: tensors that go to other libraries and come from them on the same memory.
#include <cstdint>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

/// A tensor of another library: two rows of three floats, with room between the rows.
struct foreign {
  float values[8] = {1, 2, 3, -1, 4, 5, 6, -1};
  std::int64_t shape[2] = {2, 3}, strides[2] = {4, 1};
  int destroyed = 0;
  dlpack::managed_tensor shown{
      {values, {dlpack::device_kind::cpu, 0}, 2, {dlpack::element_kind::real, 32, 1}, shape, strides, 0},
      this,
      [](dlpack::managed_tensor* one) { ++static_cast<foreign*>(one->owner)->destroyed; }};
};

template <class T>
void goes_and_comes(dlpack::element_kind kind) {
  const tensor<T, 1> x = ones<T>({3});
  dlpack::managed_tensor* const given = to_dlpack(x);
  CHECK(given->tensor.element.kind == kind);
  CHECK(given->tensor.element.bits == 8 * sizeof(T));
  const tensor y = from_dlpack<T, 1>(given);
  CHECK(y.data() == x.data());
}

}  // namespace

TEST_CASE("memory of another library is shared, and given back once, with the last handle") {
  foreign other;
  {
    tensor<float, 2> view;
    {
      const tensor x = from_dlpack<float, 2>(&other.shown);
      CHECK(equal(x, tensor<float, 2>{{1, 2, 3}, {4, 5, 6}}));
      other.values[4] = 40;
      CHECK(x(1, 0) == 40);
      x(0, 2) = 30;
      CHECK(other.values[2] == 30);
      CHECK(sum(x).item() == 1 + 2 + 30 + 40 + 5 + 6);
      view = x.transpose();
    }
    CHECK(other.destroyed == 0);
    view += 1;
    CHECK(other.values[3] == -1);
    CHECK(other.values[6] == 7);
  }
  CHECK(other.destroyed == 1);
  foreign plain;
  plain.shown.tensor.strides = nullptr;
  plain.shown.tensor.byte_offset = 4;
  CHECK(from_dlpack<float, 2>(&plain.shown)(1, 0) == 4);
  foreign empty;
  empty.shape[0] = 0;
  empty.shown.tensor.data = nullptr;
  CHECK(from_dlpack<float, 2>(&empty.shown).numel() == 0);
  CHECK((plain.destroyed == 1 && empty.destroyed == 1));
}

TEST_CASE("a tensor for another library keeps its memory until that is done") {
  dlpack::managed_tensor* given = nullptr;
  const auto before = memory<cpu>().bytes_in_use;
  {
    const tensor<double, 3> x = arange<double>(24).reshape({2, 3, 4});
    given = to_dlpack(x.permute({2, 0, 1}).slice(0, 1, 3));
  }
  CHECK(memory<cpu>().bytes_in_use > before);
  const dlpack::tensor_type& t = given->tensor;
  REQUIRE(t.rank == 3);
  CHECK((t.shape[0] == 2 && t.shape[1] == 2 && t.shape[2] == 3));
  CHECK((t.strides[0] == 1 && t.strides[1] == 12 && t.strides[2] == 4));
  CHECK(static_cast<double*>(t.data)[12] == 13);
  given->destroy(given);
  CHECK(memory<cpu>().bytes_in_use == before);
}

TEST_CASE("every element type goes and comes, from any host device") {
  using kind = dlpack::element_kind;
  goes_and_comes<float>(kind::real);
  goes_and_comes<double>(kind::real);
  goes_and_comes<half>(kind::real);
  goes_and_comes<bfloat16>(kind::bfloat);
  goes_and_comes<std::int8_t>(kind::integer);
  goes_and_comes<std::int16_t>(kind::integer);
  goes_and_comes<std::int32_t>(kind::integer);
  goes_and_comes<std::int64_t>(kind::integer);
  goes_and_comes<std::uint8_t>(kind::unsigned_integer);
  goes_and_comes<bool>(kind::boolean);
  const tensor x = ones<float, numa<0>>({2});
  CHECK(from_dlpack<float, 1>(to_dlpack(x)).data() == x.data());
  const tensor<float, 0> number = full<float>(3);
  CHECK(from_dlpack<float, 0>(to_dlpack(number)).item() == 3);
}

TEST_CASE("what does not fit is refused, and stays the caller's") {
  foreign other;
  const auto refused = [&other](auto change, const std::string& text) {
    foreign changed = other;
    changed.shown.owner = &changed;
    changed.shown.tensor.shape = changed.shape, changed.shown.tensor.strides = changed.strides;
    changed.shown.tensor.data = changed.values;
    change(changed);
    CHECK_THROWS_WITH((from_dlpack<float, 2>(&changed.shown)), Contains(text));
    CHECK(changed.destroyed == 0);
  };
  CHECK_THROWS_WITH((from_dlpack<float, 2>(nullptr)), Contains("null pointer"));
  refused([](foreign& f) { f.shown.tensor.element.bits = 64; }, "real numbers of 64 bits are no float");
  refused([](foreign& f) { f.shown.tensor.element.lanes = 4; }, "of 32 bits in several lanes are no float");
  refused([](foreign& f) { f.shown.tensor.element.kind = dlpack::element_kind::integer; }, "integers of 32 bits");
  refused([](foreign& f) { f.shown.tensor.element.kind = dlpack::element_kind{99}; }, "elements of another kind");
  refused([](foreign& f) { f.shown.tensor.rank = 3; }, "a tensor of rank 3 for one of rank 2");
  refused([](foreign& f) { f.shown.tensor.device.kind = dlpack::device_kind::cuda; }, "the type says cpu");
  refused([](foreign& f) { f.strides[1] = -1; }, "axis 1 has extent 3 and stride -1");
  refused([](foreign& f) { f.shape[0] = -2; }, "axis 0 has extent -2");
  refused([](foreign& f) { f.shown.tensor.byte_offset = 2; }, "at no multiple of 4 bytes");
  refused([](foreign& f) { f.shown.tensor.data = nullptr; }, "at no multiple of 4 bytes");
  refused([](foreign& f) { f.shape[0] = f.shape[1] = std::int64_t{1} << 40; }, "from_dlpack");
  refused(
      [](foreign& f) {
        f.shape[0] = f.shape[1] = std::int64_t{1} << 40;
        f.shown.tensor.strides = nullptr;
      },
      "more than can be addressed");
  CHECK_THROWS_AS(to_dlpack(tensor<float, 2>()), error);
}
