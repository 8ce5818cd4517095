// tests/compile_fail/offloaded_to_own_device.cpp: modules that are to be offloaded to the device where they live.
// FIRST-LINE: modules_offloaded_to_their_own_device<(sinter::)?cpu\s?>
// FIRST-LINE: name_another_device_than_theirs
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using heads = nn::offloaded<cpu, nn::linear<>>;
#else
using heads = nn::offloaded<numa<0>, nn::linear<>>;
#endif
auto f(const nn::linear<>& fc) { return heads(3, [&] { return fc; }); }
