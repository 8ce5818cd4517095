// tests/core/owned_ptr_test.cpp: the owner of one object on the heap.
#include <catch2/catch.hpp>

#include <string>
#include <utility>

#include "sinter/core/owned_ptr.hpp"

using sinter::detail::make_owned;
using sinter::detail::owned_ptr;

namespace {

struct base {
  explicit base(int& alive) : alive_(alive) { ++alive_; }
  base(const base&) = delete;
  virtual ~base() { --alive_; }
  virtual int value() const { return 1; }

 private:
  int& alive_;
};
struct derived final : base {
  using base::base;
  int value() const override { return 2; }
};

}  // namespace

TEST_CASE("An owned object ends once, with its owner", "[owned_ptr]") {
  int alive = 0;
  {
    owned_ptr<base> p = make_owned<derived>(alive);
    CHECK((p && p != nullptr && p->value() == 2 && (*p).value() == 2));
    owned_ptr<base> q = std::move(p);
    CHECK((!p && p == nullptr && p.get() == nullptr));
    CHECK(alive == 1);
    p = make_owned<base>(alive);
    CHECK(alive == 2);
    q = std::move(p);  // what q owned ends
    CHECK((alive == 1 && q->value() == 1 && !p));
  }
  CHECK(alive == 0);
}

TEST_CASE("An object is given away, and replaced", "[owned_ptr]") {
  int alive = 0;
  owned_ptr<base> p = make_owned<base>(alive);
  base* const given = p.release();
  CHECK((!p && alive == 1));
  p.reset(given);
  p.reset(new derived(alive));
  CHECK((alive == 1 && p->value() == 2));
  auto& same = p;
  p = std::move(same);
  CHECK((alive == 1 && p->value() == 2));
  p.reset();
  CHECK((!p && alive == 0));
  static_assert(!std::is_copy_constructible_v<owned_ptr<base>>);
  static_assert(std::is_convertible_v<owned_ptr<derived>, owned_ptr<base>>);
  static_assert(!std::is_convertible_v<owned_ptr<base>, owned_ptr<derived>>);
  static_assert(!std::is_convertible_v<owned_ptr<int>, owned_ptr<std::string>>);
}
