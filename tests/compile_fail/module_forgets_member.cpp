// tests/compile_fail/module_forgets_member.cpp: a member that the line of a module does not list.
// EXPECT: members_missing_in_the_list_of<model\s?>
// EXPECT: name_them_all_in_SINTER_MEMBERS_or_write_visit_by_hand
// LINES-GCC: 16
// LINES-CLANG: 30
// LINES-NVCC: 24
#include <sinter/sinter.hpp>

using namespace sinter;

struct model : nn::module<model> {
  nn::linear<> first, second;
#ifdef SINTER_MUST_FAIL
  SINTER_MEMBERS(first);
#else
  SINTER_MEMBERS(first, second);
#endif
};

model f() { return model(); }
