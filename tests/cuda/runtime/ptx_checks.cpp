// tests/cuda/runtime/ptx_checks.cpp: instructions of PTX whose results, and mistakes of kernels whose errors, the tests
// of kernels rely on. No GPU and no nvcc: the kernels are text.
#include "../../catch.hpp"

#include <array>

#include "ptx.hpp"

namespace {

using Catch::Contains;
using words = std::array<std::uint32_t, 4>;

/// What a kernel of that code leaves in 16 bytes of 0, whose address is in %rd1; %r1 is the number of its thread.
words run(const std::string& code, unsigned threads = 1) {
  const ptx::module m(R"(.version 7.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 p) {
    .reg .pred %p<5>; .reg .b16 %h<5>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %d<5>; .reg .b64 %rd<5>;
    .shared .align 16 .b8 s[64];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    )" + code + "\nret; }\n");
  alignas(16) words memory{};
  const void* const parameter = memory.data();
  m.run("k", {1, threads, 0}, &parameter, [&](std::uintptr_t at) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
    return at >= begin && at < begin + sizeof memory ? ptx::span{begin, begin + sizeof memory} : ptx::span{};
  });
  return memory;
}
/// The first word that is left by one instruction whose result is in %r2, of 32 bits.
std::uint32_t result(const std::string& code) { return run(code + " st.global.u32 [%rd1], %r2;")[0]; }
std::string error_of(const std::string& code, unsigned threads = 1) {
  try {
    run(code, threads);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("numbers become others as the ISA says") {
  CHECK(result("cvt.rzi.s32.f32 %r2, 0f7FC00000;") == 0);  // NaN
  CHECK(result("cvt.rzi.s32.f64 %r2, 0d7FF8000000000000;") == 0x80000000);
  CHECK(run("cvt.rzi.s64.f32 %rd2, 0f7FC00000; st.global.u64 [%rd1], %rd2;") == words{0, 0x80000000});
  CHECK(result("cvt.rzi.s32.f32 %r2, 0fCF800000;") == 0x80000000);                           // -2^32
  CHECK(result("cvt.rzi.u32.f32 %r2, 0fBF800000;") == 0);                                    // -1
  CHECK(result("cvt.rni.s32.f32 %r2, 0f40200000;") == 2);                                    // 2.5
  CHECK(result("cvt.rn.f16.f64 %h1, 0d3FF0020000000001; cvt.u32.u16 %r2, %h1;") == 0x3c01);  // float would be half-way
  CHECK(result("cvt.rn.f16.f32 %h1, 0f33000001; cvt.u32.u16 %r2, %h1;") == 1);               // more than half the least
  CHECK(run("cvt.rp.f32.s32 %f1, 16777217; cvt.rz.f32.s32 %f2, 16777217; st.global.v2.f32 [%rd1], {%f1, %f2};") ==
        words{0x4b800001, 0x4b800000});
}

TEST_CASE("arithmetic is rounded as asked, and has one NaN") {
  CHECK(run("mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f33000000; add.rp.f32 %f3, %f1, %f2; add.rm.f32 %f4, %f1, %f2; "
            "add.f32 %f5, %f1, %f2;"
            "sub.rz.f32 %f6, %f1, %f2; st.global.v4.f32 [%rd1], {%f3, %f4, %f5, %f6};") ==
        words{0x3f800001, 0x3f800000, 0x3f800000, 0x3f7fffff});
  CHECK(run("mov.f32 %f1, 0f7F800000; sub.f32 %f2, %f1, %f1; mov.f32 %f3, 0f00000000; mov.f32 %f4, 0f80000000; min.f32 "
            "%f5, %f3, %f4;"
            "max.f32 %f6, %f4, %f3; max.f32 %f7, %f2, %f1; st.global.v4.f32 [%rd1], {%f2, %f5, %f6, %f7};") ==
        words{0x7fffffff, 0x80000000, 0, 0x7f800000});
}

TEST_CASE("integers carry, shift and are cut") {
  CHECK(run("add.cc.u32 %r2, -1, 1; addc.u32 %r3, 0, 0; sub.cc.u32 %r4, 0, 1; subc.u32 %r5, 5, 0; st.global.v4.u32 "
            "[%rd1], {%r2, %r3, %r4, %r5};") == words{0, 1, 0xffffffff, 4});
  CHECK(run("mov.u32 %r2, 0x80000000; shr.s32 %r3, %r2, 40; shr.u32 %r4, %r2, 40; shl.b32 %r5, %r2, 32; shf.l.wrap.b32 "
            "%r6, %r2, 1, 33;"
            "st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};") == words{0xffffffff, 0, 0, 3});
  CHECK(run("mov.u32 %r2, 0xf0; bfe.s32 %r3, %r2, 4, 4; bfe.u32 %r4, %r2, 4, 4; bfe.s32 %r5, -1, 40, 8; bfi.b32 %r6, "
            "5, %r2, 4, 3;"
            "st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};") == words{0xffffffff, 15, 0xffffffff, 0xd0});
  CHECK(result("prmt.b32 %r2, 0x33221180, 0x77665544, 0x7180;") == 0x7711ff80);
  CHECK(result("lop3.b32 %r2, 12, 10, 6, 0xE8;") == 14);  // the majority
}

TEST_CASE("comparisons know NaN, and both their results are of what was there before") {
  CHECK(
      run("mov.f32 %f1, 0f7FC00000; setp.ne.f32 %p1, %f1, %f1; setp.neu.f32 %p2, %f1, %f1; selp.u32 %r2, 1, 0, %p1; "
          "selp.u32 %r3, 1, 0, %p2;"
          "setp.eq.u32 %p3, 1, 1; setp.eq.and.u32 %p3|%p4, 1, 2, %p3; selp.u32 %r4, 1, 0, %p3; selp.u32 %r5, 1, 0, %p4;"
          "st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};") == words{0, 1, 0, 1});
}

TEST_CASE("lanes exchange within their segments") {
  const std::string put =
      " setp.eq.u32 %p2, %r1, 9; selp.u32 %r3, 1, 0, %p1; @%p2 st.global.v2.u32 [%rd1], {%r2, %r3};";
  CHECK(run("shfl.sync.down.b32 %r2|%p1, %r1, 6, 31, -1;" + put, 32) == words{15, 1});
  CHECK(run("shfl.sync.down.b32 %r2|%p1, %r1, 7, 0x181f, -1;" + put, 32) == words{9, 0});  // of 8 lanes
  CHECK(run("shfl.sync.up.b32 %r2|%p1, %r1, 2, 0x1800, -1;" + put, 32) == words{9, 0});
  CHECK(run("shfl.sync.idx.b32 %r2|%p1, %r1, 3, 0x181f, -1;" + put, 32) == words{11, 1});
  CHECK(run("setp.gt.u32 %p3, %r1, 29; vote.sync.ballot.b32 %r2, %p3, -1; setp.eq.u32 %p1, 1, 1;" + put, 32) ==
        words{0xc0000000, 1});
  CHECK(run("setp.gt.u32 %p3, %r1, 29; vote.sync.any.pred %p1, %p3, -1; vote.sync.all.pred %p4, %p3, -1; selp.u32 %r2, "
            "1, 0, %p4;" +
                put,
            32) == words{0, 1});
  CHECK(run("setp.gt.u32 %p3, %r1, 40; vote.sync.any.pred %p1, %p3, -1; setp.lt.u32 %p3, %r1, 32; vote.sync.all.pred "
            "%p4, %p3, -1; selp.u32 %r2, 1, 0, %p4;" +
                put,
            32) == words{1, 0});
  CHECK(run("mov.u32 %r2, %lanemask_ge; setp.eq.u32 %p1, 1, 1;" + put, 32) == words{0xfffffe00, 1});
}

TEST_CASE("what a GPU would not forgive is an error that names the instruction") {
  CHECK(error_of("st.global.u32 [%rd1+12], 1;") == "none");
  CHECK_THAT(error_of("st.global.u32 [%rd1+16], 1;"), Contains("st.global.u32 [ %rd1 + 16 ], 1: no memory of the GPU"));
  CHECK_THAT(error_of("mov.u64 %rd2, -4; ld.global.u32 %r2, [%rd2];"), Contains("no memory of the GPU"));
  CHECK_THAT(error_of("ld.global.v2.u32 {%r2, %r3}, [%rd1+4];"), Contains("is no multiple of 8"));
  CHECK_THAT(error_of("ld.shared.u32 %r2, [s+64];"), Contains("of 64 of shared memory"));
  CHECK_THAT(error_of("mov.u32 %r2, s; cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd2, %rd2; st.global.u32 [%rd2], 1;"),
             Contains("no memory of the GPU"));
  CHECK_THAT(error_of("setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 0; @!%p1 bar.sync 0;", 3),
             Contains("others wait at another barrier (thread 1 of"));
  CHECK_THAT(error_of("setp.eq.u32 %p1, %r1, 0; @%p1 shfl.sync.idx.b32 %r2, %r1, 1, 31, 3;", 2),
             Contains("lane 1 takes no part"));
  CHECK_THAT(error_of("setp.eq.u32 %p1, %r1, 0; @%p1 bar.warp.sync 3; @!%p1 bar.sync 0;", 2),
             Contains("threads of the warp do not come to it"));
  CHECK(error_of("nanosleep.u32 40;") == "none");
  CHECK_THAT(error_of("again: nanosleep.u32 40; bra again;"), Contains("waits for what nobody does"));
  CHECK_THAT(error_of("bar.sync 1;"), Contains("a barrier other than for all threads"));
  CHECK_THAT(error_of("add.sat.s32 %r2, %r1, 1;"), Contains("'add.sat.s32' is not known here"));
}

TEST_CASE("threads that share memory with no barrier between them are an error") {
  CHECK(error_of("mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], 1; bar.sync 0; "
                 "ld.shared.u32 %r4, [s];",
                 16) == "none");
  CHECK_THAT(error_of("st.shared.u32 [s], 1;", 2), Contains("another thread has written there"));
  CHECK_THAT(error_of("ld.shared.u32 %r2, [s]; setp.eq.u32 %p1, %r1, 1; @%p1 st.shared.u32 [s], 1;", 2),
             Contains("another thread has read there"));
  CHECK_THAT(error_of("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 1; ld.shared.u32 %r2, [s];", 2),
             Contains("another thread has written there"));
  CHECK(error_of("atom.shared.add.u32 %r2, [s], 1;", 64) == "none");
  CHECK(error_of("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 1; bar.warp.sync -1; ld.shared.u32 %r2, [s];", 32) ==
        "none");
}

TEST_CASE("a copy arrives when it is waited for") {
  CHECK(run("st.global.u32 [%rd1], 7; cp.async.ca.shared.global [s], [%rd1], 4; ld.shared.u32 %r2, [s]; "
            "cp.async.wait_all; ld.shared.u32 %r3, [s];"
            "st.global.v2.u32 [%rd1], {%r2, %r3};") == words{0xcbcbcbcb, 7});
}
