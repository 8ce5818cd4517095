// tests/compile_fail/module_without_a_list.cpp: a module that does not list its members.
// FIRST-LINE: no_list_of_the_members_of<net\s?>
// FIRST-LINE: name_them_all_in_SINTER_MEMBERS_or_write_visit_by_hand
#include <sinter/sinter.hpp>

using namespace sinter;

struct net : nn::module<net> {
  nn::linear<float> layer;
  auto forward(const variable<float, 2>& x) const { return layer(x); }
#ifndef SINTER_MUST_FAIL
  SINTER_MEMBERS(layer);
#endif
};
net f() { return {}; }
